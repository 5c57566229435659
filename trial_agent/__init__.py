"""What runs next to the user's code: the agent, its trials, the spool and the functions a script calls.

The names load lazily: a trial script imports this package to reach `sdk` and must not pay for the agent.
"""

from __future__ import annotations

from ..protocol import lazy_names

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from .arguments import flat_arguments
    from .checkpoint import Checkpoint, remove
    from .checkpoint_store import Keeping
    from .command_line import StartError, arguments_of, with_interpreter
    from .core import LAST_RESORT, Agent
    from .environ import TOKEN, base_environment, mark, visible_devices
    from .errors import is_of_machine, shortened
    from .events import Ended, Event, Problem, Report, Saved, Started, decode_events
    from .file_watch import FileWatch, best_watch
    from .forks import ending_forks, shield_forks
    from .free_space import disk_error
    from .function_trial import FunctionLoader, FunctionTrial
    from .hosting import hosted
    from .job import Job
    from .line_file import LineFile
    from .machine import available_bytes, usable_bytes, usable_cpus
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
    from .sdk import (
        NoRunningTrial,
        StandaloneChannel,
        TrialStopped,
        current,
        get_budget,
        get_checkpoint,
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_next_parameters,
        get_seed,
        get_sequence_id,
        get_trial_id,
        metric_text,
        parse_args,
        report_final_result,
        report_intermediate_result,
        save_checkpoint,
    )
    from .spool import read_spool, spool_name
    from .syncing import sync, sync_tree, write_whole
    from .trainable import FunctionTrainable, Trainable, TrialFunction, wrap_function
    from .unix_server import UnixServer, peer_uid
    from .watchdog_client import WatchdogClient

_HOMES = {
    ".arguments": "flat_arguments",
    ".checkpoint": "Checkpoint remove",
    ".checkpoint_store": "Keeping",
    ".command_line": "StartError arguments_of with_interpreter",
    ".core": "LAST_RESORT Agent",
    ".environ": "TOKEN base_environment mark visible_devices",
    ".events": "Ended Event Problem Report Saved Started decode_events",
    ".file_watch": "FileWatch best_watch",
    ".errors": "is_of_machine shortened",
    ".forks": "ending_forks shield_forks",
    ".function_trial": "FunctionLoader FunctionTrial",
    ".hosting": "hosted",
    ".job": "Job",
    ".line_file": "LineFile",
    ".machine": "available_bytes usable_bytes usable_cpus",
    ".messages": "MessageDecoder MessageError encode_message from_bytes to_bytes",
    ".outbox": "Outbox",
    ".pickling": "pickled",
    ".placeholders": "filled misfits",
    ".processes": "ProcessTree command_words",
    ".requests": "Hello Kill Pause Ping Poll ReadFile Request RunSpec Shutdown Start encode_request",
    ".free_space": "disk_error",
    ".sdk": (
        "NoRunningTrial StandaloneChannel TrialStopped current metric_text get_budget get_checkpoint "
        "get_current_parameter "
        "get_experiment_id get_next_parameter get_next_parameters get_seed get_sequence_id get_trial_id parse_args "
        "report_final_result report_intermediate_result save_checkpoint"
    ),
    ".spool": "read_spool spool_name",
    ".syncing": "sync sync_tree write_whole",
    ".trainable": "FunctionTrainable Trainable TrialFunction wrap_function",
    ".unix_server": "UnixServer peer_uid",
    ".watchdog_client": "WatchdogClient",
}

__all__ = [
    "LAST_RESORT",
    "TOKEN",
    "Agent",
    "Checkpoint",
    "Ended",
    "Event",
    "FileWatch",
    "FunctionLoader",
    "FunctionTrainable",
    "FunctionTrial",
    "Hello",
    "Job",
    "Keeping",
    "Kill",
    "LineFile",
    "MessageDecoder",
    "MessageError",
    "NoRunningTrial",
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
    "StandaloneChannel",
    "Start",
    "StartError",
    "Started",
    "Trainable",
    "TrialFunction",
    "TrialStopped",
    "UnixServer",
    "WatchdogClient",
    "arguments_of",
    "available_bytes",
    "base_environment",
    "best_watch",
    "command_words",
    "current",
    "decode_events",
    "disk_error",
    "encode_message",
    "encode_request",
    "ending_forks",
    "filled",
    "flat_arguments",
    "from_bytes",
    "get_budget",
    "get_checkpoint",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_next_parameters",
    "get_seed",
    "get_sequence_id",
    "get_trial_id",
    "hosted",
    "is_of_machine",
    "mark",
    "metric_text",
    "misfits",
    "parse_args",
    "peer_uid",
    "pickled",
    "read_spool",
    "remove",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "shield_forks",
    "shortened",
    "spool_name",
    "sync",
    "sync_tree",
    "to_bytes",
    "usable_bytes",
    "usable_cpus",
    "visible_devices",
    "with_interpreter",
    "wrap_function",
    "write_whole",
]


if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
