"""What a trial script calls, with nothing that would slow its start: parameters in, results and checkpoints out.

Classes and threads of trials load on first use. The agent, which runs trials, is another room.
"""

from __future__ import annotations

from ..protocol import lazy_names
from .checkpoint import ABOUT, Checkpoint, remove, save_folder, write_data
from .current_trial import (
    OWN_PROCESS,
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
    parameters_of,
    parse_args,
    report_final_result,
    report_intermediate_result,
    save_checkpoint,
)
from .errors import TRACEBACK, MachineError, is_of_machine, is_there, own_calls, shortened
from .line_file import LineFile, file_identity, noted_refusal
from .variables import Variables, outer_launches

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from .command_arguments import as_word, flat_arguments
    from .loaded_code import CodeFacts, LoadedCode, code_digest, file_digest, merged_code
    from .trainable import FunctionTrainable, Trainable, TrialFunction, clean_up, wrap_function
    from .trial_threads import channel_here, hosted
else:
    __getattr__ = lazy_names(__name__, __file__)

# What scripts call and catch; `pitchpipe` has most of it.
__all__ = [
    "Checkpoint",
    "FunctionTrainable",
    "NoRunningTrial",
    "Trainable",
    "TrialFunction",
    "TrialStopped",
    "get_budget",
    "get_checkpoint",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_next_parameters",
    "get_seed",
    "get_sequence_id",
    "get_trial_id",
    "parse_args",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "wrap_function",
]
# What agents and other rooms use.
__all__ += [
    "ABOUT",
    "OWN_PROCESS",
    "TRACEBACK",
    "CodeFacts",
    "LineFile",
    "LoadedCode",
    "MachineError",
    "StandaloneChannel",
    "Variables",
    "as_word",
    "channel_here",
    "clean_up",
    "code_digest",
    "current",
    "file_digest",
    "file_identity",
    "flat_arguments",
    "hosted",
    "is_of_machine",
    "is_there",
    "merged_code",
    "metric_text",
    "noted_refusal",
    "outer_launches",
    "own_calls",
    "parameters_of",
    "remove",
    "save_folder",
    "shortened",
    "write_data",
]
