"""What runs next to the user's code: the agent, its trials and the spool. The names load on first use."""

from __future__ import annotations

import sys
from importlib import import_module

from ..protocol import lazy_names

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from .checkpoint_store import Keeping
    from .command_line import StartError, arguments_of, with_interpreter
    from .core import LAST_RESORT, Agent
    from .environ import TOKEN, base_environment, mark, visible_devices
    from .events import Ended, Event, Problem, Report, Saved, Started, decode_events
    from .file_watch import FileWatch, best_watch
    from .forks import ending_forks, shield_forks
    from .free_space import disk_error
    from .function_trial import FunctionLoader, FunctionTrial
    from .job import Job
    from .machine_limits import available_bytes, usable_bytes, usable_cpus
    from .messages import MessageDecoder, MessageError, encode_message, from_bytes, to_bytes
    from .outbox import Outbox
    from .pickling import pickled
    from .placeholders import filled, misfits
    from .processes import ProcessTree, command_words
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
    from .spool import read_spool, spool_name
    from .syncing import sync, sync_tree, write_whole
    from .unix_server import UnixServer, peer_uid
    from .watchdog_client import WatchdogClient

# Former homes of what is in `sdk`, by which functions and classes were pickled, in `trial.pkl` and in checkpoints.
_MOVED = {"checkpoint": "checkpoint", "sdk": "current_trial", "trainable": "trainable"}
for _former, _home in _MOVED.items():
    sys.modules[f"{__name__}.{_former}"] = import_module(f"..sdk.{_home}", __name__)

_HOMES = {
    "..sdk": (
        "Checkpoint FunctionTrainable NoRunningTrial Trainable TrialStopped get_budget get_checkpoint "
        "get_current_parameter get_experiment_id get_next_parameter get_next_parameters get_seed get_sequence_id "
        "get_trial_id parse_args report_final_result report_intermediate_result save_checkpoint wrap_function"
    ),
    ".checkpoint_store": "Keeping",
    ".command_line": "StartError arguments_of with_interpreter",
    ".core": "LAST_RESORT Agent",
    ".environ": "TOKEN base_environment mark visible_devices",
    ".events": "Ended Event Problem Report Saved Started decode_events",
    ".file_watch": "FileWatch best_watch",
    ".forks": "ending_forks shield_forks",
    ".function_trial": "FunctionLoader FunctionTrial",
    ".job": "Job",
    ".machine_limits": "available_bytes usable_bytes usable_cpus",
    ".messages": "MessageDecoder MessageError encode_message from_bytes to_bytes",
    ".outbox": "Outbox",
    ".pickling": "pickled",
    ".placeholders": "filled misfits",
    ".processes": "ProcessTree command_words",
    ".requests": "Hello Kill Pause Ping Poll ReadFile Request RunSpec Shutdown Start encode_request",
    ".free_space": "disk_error",
    ".spool": "read_spool spool_name",
    ".syncing": "sync sync_tree write_whole",
    ".unix_server": "UnixServer peer_uid",
    ".watchdog_client": "WatchdogClient",
}

__all__ = [
    "LAST_RESORT",
    "TOKEN",
    "Agent",
    "Ended",
    "Event",
    "FileWatch",
    "FunctionLoader",
    "FunctionTrial",
    "Hello",
    "Job",
    "Keeping",
    "Kill",
    "MessageDecoder",
    "MessageError",
    "Outbox",
    "Pause",
    "Ping",
    "Poll",
    "Problem",
    "ProcessTree",
    "ReadFile",
    "Report",
    "Request",
    "RunSpec",
    "Saved",
    "Shutdown",
    "Start",
    "StartError",
    "Started",
    "UnixServer",
    "WatchdogClient",
    "arguments_of",
    "available_bytes",
    "base_environment",
    "best_watch",
    "command_words",
    "decode_events",
    "disk_error",
    "encode_message",
    "encode_request",
    "ending_forks",
    "filled",
    "from_bytes",
    "mark",
    "misfits",
    "peer_uid",
    "pickled",
    "read_spool",
    "shield_forks",
    "spool_name",
    "sync",
    "sync_tree",
    "to_bytes",
    "usable_bytes",
    "usable_cpus",
    "visible_devices",
    "with_interpreter",
    "write_whole",
]


if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
