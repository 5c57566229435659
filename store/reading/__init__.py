"""The read model: one experiment, as its folder holds it, for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .closeness import closest_object
    from .csv_cells import cell_text, cell_value, csv_text
    from .curves import Curve, ReportedResult
    from .defaults import gain_text, gains_over_defaults
    from .exporting import csv_lines, detail_object, family_object, json_lines, trial_object
    from .failure_regions import FailureRegion
    from .failures import (
        FailedTrial,
        FailureGroup,
        ending_beside,
        ending_text,
        excerpt,
        hint_text,
        region_text,
    )
    from .feed import FeedEvent
    from .json_values import flat, plain, to_json
    from .log_files import FilePiece
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
        closeness_lines,
        closest_text,
        counts_text,
        duration_text,
        escaped,
        experiment_text,
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
else:
    __getattr__ = lazy_names(__name__, __file__)
