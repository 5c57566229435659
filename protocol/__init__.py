"""What crosses a process boundary: commands, frames, JSON and metrics; what messages are made of. No I/O, no clock."""

from __future__ import annotations

from .lazy import lazy_names

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from .codec import dumps, loads
    from .errors import JsonError, MetricError, ProtocolError
    from .extras import (
        MissingExtraError,
        install_command,
        is_older,
        libraries_by_extra,
        require_extra,
        too_old,
    )
    from .frames import (
        MAX_LENGTH,
        OWN_COMMANDS,
        PARAMETERS_ENVIRONMENT,
        PROTOCOL_ENVIRONMENT,
        PROTOCOL_VERSION,
        BadHeader,
        BadPayload,
        CommandType,
        Frame,
        FrameDecoder,
        FrameError,
        FrameTooLong,
        TruncatedFrame,
        UnknownCommand,
        encode_frame,
    )
    from .json_types import Config, Json, JsonObject, Parameters, camel_case, snake_case
    from .message_parts import JsonPath, brief, brief_json, counted, cut, format_path, rounded
    from .metrics import metric_value, names_of, number_in, scalar_item, with_default
    from .objectives import Direction, Objective, constraint_limits, main_objective, objectives_of
    from .payloads import (
        CheckpointMessage,
        ErrorMessage,
        ImportItem,
        InitializedMessage,
        MetricMessage,
        ProcessedMessage,
        ResumeMessage,
        TrialEndMessage,
        VerdictMessage,
        import_payload,
        metric_payload,
        trial_end_payload,
    )
    from .record import (
        STARTING_POINTS,
        AddedSource,
        ParameterRecord,
        RecordedStep,
        added_record,
        budget_and_donor,
        family_end_of,
        is_default,
        is_starting_point,
        parameters_of,
        pauses_at_budget,
        repeat_number,
        repeat_of,
        repeated,
        schedule_of,
        seed_of_repeat,
        with_family_end,
        with_parameters,
        with_pause_at_budget,
        with_schedule,
    )
    from .seams import foreign
    from .shared_texts import (
        CANNOT_RUN,
        CHECKPOINT_GONE,
        EXPECTED_GAIN,
        LED_TO,
        NO_COMMAND,
        NO_GAIN,
        NOT_EXECUTABLE,
        NOT_FOUND,
        NOT_STARTED,
        NOT_UNDERSTOOD,
        OVER_LIMIT,
    )
    from .sizes import size_text
    from .users_code import StartedWhileLoadingError, loading, refuse_while_loading
else:
    __getattr__ = lazy_names(__name__, __file__)
