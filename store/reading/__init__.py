"""The read model: one experiment as its folder tells it, for every reader."""

from .curves import Curve
from .exporting import csv_lines, json_lines
from .failed_trial import FailedTrial, ending_text, failures_alike, hint_text, retries_by_kind
from .failure_groups import FailureGroup
from .feed import EventPage
from .log_files import FilePiece
from .plain import to_json
from .trial_query import Condition, QueryError, TrialQuery
from .view import ExperimentView, Follow
from .words import (
    STATUS_WORDS,
    counts_text,
    duration_text,
    flat,
    left_text,
    length_text,
    moment_text,
    number_text,
    parameters_text,
    rate_text,
    result_text,
)

__all__ = [
    "STATUS_WORDS",
    "Condition",
    "Curve",
    "EventPage",
    "ExperimentView",
    "FailedTrial",
    "FailureGroup",
    "FilePiece",
    "Follow",
    "QueryError",
    "TrialQuery",
    "counts_text",
    "csv_lines",
    "duration_text",
    "ending_text",
    "failures_alike",
    "flat",
    "hint_text",
    "json_lines",
    "left_text",
    "length_text",
    "moment_text",
    "number_text",
    "parameters_text",
    "rate_text",
    "result_text",
    "retries_by_kind",
    "to_json",
]
