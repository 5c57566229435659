"""What crosses a process boundary: commands, frames, JSON and metrics. No I/O, no threads, no clock."""

from __future__ import annotations

from .lazy import lazy_names

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from .codec import dumps, loads
    from .commands import (
        OWN_COMMANDS,
        PARAMETERS_ENVIRONMENT,
        PROTOCOL_ENVIRONMENT,
        PROTOCOL_VERSION,
        CommandType,
        Frame,
    )
    from .errors import (
        BadHeader,
        BadPayload,
        FrameError,
        FrameTooLong,
        JsonError,
        MetricError,
        ProtocolError,
        TruncatedFrame,
        UnknownCommand,
    )
    from .failures import CHECKPOINT_GONE, LED_TO
    from .frames import MAX_LENGTH, FrameDecoder, encode_frame
    from .metrics import metric_value, names_of, number_in, with_default
    from .objectives import Direction, Objective, constraint_limits, main_objective, objectives_of
    from .record import (
        STARTING_POINTS,
        AddedSource,
        added_record,
        budget_and_donor,
        family_end_of,
        is_starting_point,
        parameters_of,
        pauses_at_budget,
        repeat_of,
        repeated,
        seed_of_repeat,
        with_family_end,
        with_parameters,
        with_pause_at_budget,
    )
    from .seams import foreign
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "CHECKPOINT_GONE",
    "LED_TO",
    "MAX_LENGTH",
    "OWN_COMMANDS",
    "PARAMETERS_ENVIRONMENT",
    "PROTOCOL_ENVIRONMENT",
    "PROTOCOL_VERSION",
    "STARTING_POINTS",
    "AddedSource",
    "BadHeader",
    "BadPayload",
    "CommandType",
    "Direction",
    "Frame",
    "FrameDecoder",
    "FrameError",
    "FrameTooLong",
    "JsonError",
    "MetricError",
    "Objective",
    "ProtocolError",
    "TruncatedFrame",
    "UnknownCommand",
    "added_record",
    "budget_and_donor",
    "constraint_limits",
    "dumps",
    "encode_frame",
    "family_end_of",
    "foreign",
    "is_starting_point",
    "lazy_names",
    "loads",
    "main_objective",
    "metric_value",
    "names_of",
    "number_in",
    "objectives_of",
    "parameters_of",
    "pauses_at_budget",
    "repeat_of",
    "repeated",
    "seed_of_repeat",
    "with_default",
    "with_family_end",
    "with_parameters",
    "with_pause_at_budget",
]
