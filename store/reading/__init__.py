"""The read model: one experiment, as its folder holds it, for every reader."""

from __future__ import annotations

from .closeness import closeness_lines
from .curves import Curve
from .defaults import gain_text, gains_over_defaults
from .exporting import csv_lines, json_lines, trial_object
from .failures import FailedTrial, FailureGroup, ending_beside, ending_text, hint_text
from .feed import EventPage
from .front import front_of, knee_of
from .json_values import plain, to_json
from .log_files import FilePiece
from .nni_forms import nni_export, nni_job, nni_jobs, nni_metadata, nni_metrics, nni_profile, nni_statistics
from .trial_query import Condition, QueryError, TrialQuery
from .view import ExperimentView, Follow
from .words import (
    STATUS_WORDS,
    closest_text,
    counts_text,
    duration_text,
    flat,
    front_lines,
    left_text,
    length_text,
    margin_text,
    moment_text,
    number_text,
    parameters_text,
    rate_text,
    repeats_text,
    result_text,
    value_text,
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
    "closeness_lines",
    "closest_text",
    "counts_text",
    "csv_lines",
    "duration_text",
    "ending_beside",
    "ending_text",
    "flat",
    "front_lines",
    "front_of",
    "gain_text",
    "gains_over_defaults",
    "hint_text",
    "json_lines",
    "knee_of",
    "left_text",
    "length_text",
    "margin_text",
    "moment_text",
    "nni_export",
    "nni_job",
    "nni_jobs",
    "nni_metadata",
    "nni_metrics",
    "nni_profile",
    "nni_statistics",
    "number_text",
    "parameters_text",
    "plain",
    "rate_text",
    "repeats_text",
    "result_text",
    "to_json",
    "trial_object",
    "value_text",
]
