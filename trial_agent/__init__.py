"""What runs next to the user's code: the agent, its trials and the spool. The names load on first use."""

from __future__ import annotations

import sys
from importlib import import_module

from ..protocol import lazy_names

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    # Former names, which scripts may import from here.
    from ..sdk import (
        Checkpoint,
        FunctionTrainable,
        NoRunningTrial,
        Trainable,
        TrialStopped,
        get_budget,
        get_checkpoint,
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_next_parameters,
        get_seed,
        get_sequence_id,
        get_trial_id,
        parse_args,
        report_final_result,
        report_intermediate_result,
        save_checkpoint,
        wrap_function,
    )
    from .agent_events import Ended, Event, Problem, Report, Saved, Started, decode_events
    from .checkpoint_store import Keeping
    from .command_line import StartError, arguments_of, with_interpreter
    from .core import LAST_RESORT, Agent
    from .disk import disk_error
    from .environ import TOKEN, base_environment, mark, visible_devices
    from .file_watch import FileWatch, best_watch
    from .forks import ending_forks, shield_forks
    from .function_trial import FunctionLoader, FunctionTrial
    from .job import Job
    from .machine_limits import available_bytes, usable_bytes, usable_cpus
    from .messages import MessageDecoder, encode_message, from_bytes, to_bytes
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
else:
    __getattr__ = lazy_names(__name__, __file__)

# Former homes of what is in `sdk`, by which functions and classes were pickled, in `trial.pkl` and in checkpoints.
_MOVED = {"checkpoint": "checkpoint", "sdk": "current_trial", "trainable": "trainable"}
for _former, _home in _MOVED.items():
    sys.modules[f"{__name__}.{_former}"] = import_module(f"..sdk.{_home}", __name__)
