"""The read model: one experiment, as its folder holds it, for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .closeness import closeness_lines, closest_object
    from .csv_cells import cell_text, cell_value, csv_text
    from .curves import Curve, ReportedResult
    from .defaults import gain_text, gains_over_defaults
    from .exporting import csv_lines, detail_object, family_object, json_lines, trial_object
    from .failures import FailedTrial, FailureGroup, ending_beside, ending_text, excerpt, hint_text
    from .feed import EventPage, FeedEvent
    from .json_values import plain, to_json
    from .log_files import FilePiece
    from .nni_forms import (
        nni_export,
        nni_job,
        nni_jobs,
        nni_metadata,
        nni_metrics,
        nni_profile,
        nni_statistics,
    )
    from .read_model import (
        Attempt,
        FamilyRow,
        Goal,
        HistoryEntry,
        ParetoFront,
        Summary,
        TrialDetail,
        TrialRow,
        VolumeEntry,
    )
    from .trial_query import Condition, QueryError, TrialQuery, plain_field, spelled_field
    from .view import ExperimentView, Follow
    from .words import (
        STATUS_WORDS,
        best_result_text,
        closest_text,
        counts_text,
        duration_text,
        escaped,
        experiment_text,
        flat,
        front_lines,
        front_text,
        is_bare,
        left_text,
        length_text,
        margin_text,
        moment_text,
        nouns,
        number_text,
        option_text,
        parameters_text,
        rate_text,
        reason_text,
        repeat_text,
        repeats_text,
        result_text,
        value_text,
        values_text,
        violation_text,
        visible,
    )

_HOMES = {
    ".closeness": "closeness_lines closest_object",
    ".csv_cells": "cell_text cell_value csv_text",
    ".curves": "Curve ReportedResult",
    ".defaults": "gain_text gains_over_defaults",
    ".exporting": "csv_lines detail_object family_object json_lines trial_object",
    ".failures": "FailedTrial FailureGroup ending_beside ending_text excerpt hint_text",
    ".feed": "EventPage FeedEvent",
    ".json_values": "plain to_json",
    ".log_files": "FilePiece",
    ".nni_forms": "nni_export nni_job nni_jobs nni_metadata nni_metrics nni_profile nni_statistics",
    ".read_model": "Attempt FamilyRow Goal HistoryEntry ParetoFront Summary TrialDetail TrialRow VolumeEntry",
    ".trial_query": "Condition QueryError TrialQuery plain_field spelled_field",
    ".view": "ExperimentView Follow",
    ".words": (
        "STATUS_WORDS best_result_text closest_text counts_text duration_text escaped experiment_text flat front_lines "
        "front_text is_bare left_text length_text margin_text moment_text nouns number_text option_text "
        "parameters_text rate_text reason_text repeat_text repeats_text result_text value_text values_text "
        "violation_text visible"
    ),
}

__all__ = [
    "STATUS_WORDS",
    "Attempt",
    "Condition",
    "Curve",
    "EventPage",
    "ExperimentView",
    "FailedTrial",
    "FailureGroup",
    "FamilyRow",
    "FeedEvent",
    "FilePiece",
    "Follow",
    "Goal",
    "HistoryEntry",
    "ParetoFront",
    "QueryError",
    "ReportedResult",
    "Summary",
    "TrialDetail",
    "TrialQuery",
    "TrialRow",
    "VolumeEntry",
    "best_result_text",
    "cell_text",
    "cell_value",
    "closeness_lines",
    "closest_object",
    "closest_text",
    "counts_text",
    "csv_lines",
    "csv_text",
    "detail_object",
    "duration_text",
    "ending_beside",
    "ending_text",
    "escaped",
    "excerpt",
    "experiment_text",
    "family_object",
    "flat",
    "front_lines",
    "front_text",
    "gain_text",
    "gains_over_defaults",
    "hint_text",
    "is_bare",
    "json_lines",
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
    "nouns",
    "number_text",
    "option_text",
    "parameters_text",
    "plain",
    "plain_field",
    "rate_text",
    "reason_text",
    "repeat_text",
    "repeats_text",
    "result_text",
    "spelled_field",
    "to_json",
    "trial_object",
    "value_text",
    "values_text",
    "violation_text",
    "visible",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
