"""The read model: one experiment, as its folder holds it, for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .closeness import closest_object
    from .code_versions import CodeVersion, ExperimentStart, changed_files
    from .csv_cells import cell_text, cell_value, csv_text
    from .curves import Curve, ReportedResult
    from .exporting import csv_lines, detail_object, family_object, json_lines, trial_object
    from .failure_groups import FailureGroup, FailureRegion
    from .feed import FeedEvent
    from .field_names import ORDERS, FieldNames
    from .json_values import flat, numbers_in, plain, to_json
    from .log_files import FilePiece
    from .read_model import (
        ABSENT,
        Attempt,
        BestIntermediate,
        ChangedParameter,
        ClosestTrial,
        FamilyRow,
        Goal,
        HistoryEntry,
        ParetoFront,
        Repeats,
        Schedule,
        ScheduleStep,
        Summary,
        TrialDetail,
        TrialEnd,
        TrialRow,
        VolumeEntry,
    )
    from .schedules import NoScheduleError
    from .trial_columns import TrialColumn, TrialTable, columns_in
    from .trial_query import Condition, QueryError, TrialQuery, plain_field, spelled_field, split_names
    from .view import ExperimentView, Follow
else:
    __getattr__ = lazy_names(__name__, __file__)
