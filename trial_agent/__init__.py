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
    from .agent_events import Ended, Event, Outbox, Report, Saved, SpoolProblem, Started, decode_events
    from .checkpoint_store import Keeping
    from .core import LAST_RESORT, Agent
    from .disk import disk_error, sync, sync_tree, write_whole
    from .environ import TOKEN, base_environment, mark, visible_devices
    from .forks import ending_forks, shield_forks
    from .function_trial import FunctionLoader, FunctionTrial
    from .job import Job
    from .launcher import StartError, arguments_of, start_program
    from .machine_limits import available_bytes, usable_bytes, usable_cpus
    from .messages import (
        Batch,
        FilePart,
        Hello,
        HelloReply,
        Kill,
        Message,
        MessageDecoder,
        Pause,
        Ping,
        Poll,
        ReadFile,
        Reply,
        Request,
        RunSpec,
        Shutdown,
        Start,
        encode_message,
        encode_request,
        from_bytes,
        to_bytes,
    )
    from .pickling import other_compiler, pickled
    from .placeholders import filled, misfits
    from .poll_sources import ExitWatch, FileWatch, best_watch
    from .processes import ProcessTree, WatchdogClient, command_words
    from .spool import SpoolReader, output_name, read_spool, spool_name
    from .unix_server import UnixServer, peer_uid
else:
    __getattr__ = lazy_names(__name__, __file__)

# Former homes of what is in `sdk`, by which functions and classes were pickled, in `trial.pkl` and in checkpoints.
_MOVED = {"checkpoint": "checkpoint", "sdk": "current_trial", "trainable": "trainable"}
for _former, _home in _MOVED.items():
    sys.modules[f"{__name__}.{_former}"] = import_module(f"..sdk.{_home}", __name__)
