"""What runs next to the user's code: the agent, its trials, the spool and the functions a script calls.

The names load lazily: a trial script comes through here on its way to `sdk` and must not pay for the agent.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from typing import Any

    from .checkpoint import Checkpoint
    from .checkpoint_store import Keeping
    from .command_line import StartError, arguments_of, with_interpreter
    from .core import LAST_RESORT, Agent
    from .environ import REPORTS, TOKEN, base_environment, mark
    from .events import Ended, Event, Problem, Report, Saved, Started, decode_events
    from .file_watch import FileWatch, best_watch
    from .function_trial import FunctionLoader, FunctionTrial
    from .guard import Guard
    from .job import Job
    from .line_file import LineFile
    from .messages import MessageDecoder, MessageError, encode_message
    from .outbox import Outbox
    from .requests import (
        Hello,
        Kill,
        Pause,
        Ping,
        Poll,
        ReadFile,
        Request,
        RunSpec,
        Shutdown,
        Start,
        encode_request,
    )
    from .room import no_room
    from .sdk import (
        TrialStopped,
        get_budget,
        get_checkpoint,
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_next_parameters,
        get_sequence_id,
        get_trial_id,
        report_final_result,
        report_intermediate_result,
        save_checkpoint,
    )
    from .spool import SpoolReader, read_spool, spool_name
    from .syncing import sync, sync_tree, write_whole
    from .trainable import FunctionTrainable, Trainable, TrialFunction, wrap_function
    from .unix_server import UnixServer, peer_uid
    from .watchdog import kill_all

_HOMES = {
    "decode_events": ".events",
    "Ended": ".events",
    "Problem": ".events",
    "Report": ".events",
    "Saved": ".events",
    "Started": ".events",
    "RunSpec": ".requests",
    "Agent": ".core",
    "Checkpoint": ".checkpoint",
    "Event": ".events",
    "FileWatch": ".file_watch",
    "FunctionLoader": ".function_trial",
    "FunctionTrainable": ".trainable",
    "FunctionTrial": ".function_trial",
    "Guard": ".guard",
    "Job": ".job",
    "Keeping": ".checkpoint_store",
    "LAST_RESORT": ".core",
    "LineFile": ".line_file",
    "MessageDecoder": ".messages",
    "MessageError": ".messages",
    "Outbox": ".outbox",
    "REPORTS": ".environ",
    "encode_request": ".requests",
    "Start": ".requests",
    "Shutdown": ".requests",
    "Request": ".requests",
    "ReadFile": ".requests",
    "Poll": ".requests",
    "Ping": ".requests",
    "Pause": ".requests",
    "Kill": ".requests",
    "Hello": ".requests",
    "SpoolReader": ".spool",
    "StartError": ".command_line",
    "TOKEN": ".environ",
    "Trainable": ".trainable",
    "TrialFunction": ".trainable",
    "TrialStopped": ".sdk",
    "UnixServer": ".unix_server",
    "arguments_of": ".command_line",
    "base_environment": ".environ",
    "best_watch": ".file_watch",
    "encode_message": ".messages",
    "get_budget": ".sdk",
    "get_checkpoint": ".sdk",
    "get_current_parameter": ".sdk",
    "get_experiment_id": ".sdk",
    "get_next_parameter": ".sdk",
    "get_next_parameters": ".sdk",
    "get_sequence_id": ".sdk",
    "get_trial_id": ".sdk",
    "kill_all": ".watchdog",
    "mark": ".environ",
    "no_room": ".room",
    "peer_uid": ".unix_server",
    "read_spool": ".spool",
    "report_final_result": ".sdk",
    "report_intermediate_result": ".sdk",
    "save_checkpoint": ".sdk",
    "spool_name": ".spool",
    "sync": ".syncing",
    "sync_tree": ".syncing",
    "with_interpreter": ".command_line",
    "wrap_function": ".trainable",
    "write_whole": ".syncing",
}

__all__ = [
    "LAST_RESORT",
    "REPORTS",
    "TOKEN",
    "Agent",
    "Checkpoint",
    "Ended",
    "Event",
    "FileWatch",
    "FunctionLoader",
    "FunctionTrainable",
    "FunctionTrial",
    "Guard",
    "Hello",
    "Job",
    "Keeping",
    "Kill",
    "LineFile",
    "MessageDecoder",
    "MessageError",
    "Outbox",
    "Pause",
    "Ping",
    "Poll",
    "Problem",
    "ReadFile",
    "Report",
    "Request",
    "RunSpec",
    "Saved",
    "Shutdown",
    "SpoolReader",
    "Start",
    "StartError",
    "Started",
    "Trainable",
    "TrialFunction",
    "TrialStopped",
    "UnixServer",
    "arguments_of",
    "base_environment",
    "best_watch",
    "decode_events",
    "encode_message",
    "encode_request",
    "get_budget",
    "get_checkpoint",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_next_parameters",
    "get_sequence_id",
    "get_trial_id",
    "kill_all",
    "mark",
    "no_room",
    "peer_uid",
    "read_spool",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "spool_name",
    "sync",
    "sync_tree",
    "with_interpreter",
    "wrap_function",
    "write_whole",
]


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
