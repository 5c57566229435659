"""Pitchpipe tunes hyper-parameters. Functions for trial scripts are imported at once, everything else on first use.

>>> import pitchpipe
>>> parameters = {"lr": 0.1, **pitchpipe.get_next_parameter()}
>>> pitchpipe.report_final_result(0.9)
Final result: 0.9
"""

from __future__ import annotations

from .protocol import lazy_names as _lazy_names
from .sdk import (
    Checkpoint,
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
)

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every script imports this
if TYPE_CHECKING:
    from typing import Any

    __version__: str

    from .assessors import Assessor, AssessResult
    from .compat.tune import TuneClient, TuneServer
    from .experiment import Experiment
    from .manager import OtherSearchError, PausesError, TrialOverError, UnknownTrialError
    from .manager.hooks import (
        Callback,
        CombinedStopper,
        CriteriaStopper,
        ExperimentPlateauStopper,
        FunctionStopper,
        MaximumIterationStopper,
        Stopper,
        TimeoutStopper,
        TrialPlateauStopper,
    )
    from .registry import make_env, register_env, register_trainable
    from .replay import replay_schedule
    from .results import ExperimentResult, Interrupted
    from .sdk import FunctionTrainable, NoRunningTrial, Trainable, TrialStopped, wrap_function
    from .search import Search, maximize, minimize
    from .search_space import (
        choice,
        lognormal,
        lograndint,
        loguniform,
        normal,
        qlognormal,
        qloguniform,
        qnormal,
        quniform,
        randint,
        uniform,
    )
    from .tuners import NoMoreTrialError, Tuner

else:
    _find = _lazy_names(__name__, __file__)

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("pitchpipe")
        return _find(name)


__all__ = [
    "AssessResult",
    "Assessor",
    "Callback",
    "Checkpoint",
    "CombinedStopper",
    "CriteriaStopper",
    "Experiment",
    "ExperimentPlateauStopper",
    "ExperimentResult",
    "FunctionStopper",
    "FunctionTrainable",
    "Interrupted",
    "MaximumIterationStopper",
    "NoMoreTrialError",
    "NoRunningTrial",
    "OtherSearchError",
    "PausesError",
    "Search",
    "Stopper",
    "TimeoutStopper",
    "Trainable",
    "TrialOverError",
    "TrialPlateauStopper",
    "TrialStopped",
    "TuneClient",
    "TuneServer",
    "Tuner",
    "UnknownTrialError",
    "__version__",
    "choice",
    "get_budget",
    "get_checkpoint",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_next_parameters",
    "get_seed",
    "get_sequence_id",
    "get_trial_id",
    "lognormal",
    "lograndint",
    "loguniform",
    "make_env",
    "maximize",
    "minimize",
    "normal",
    "parse_args",
    "qlognormal",
    "qloguniform",
    "qnormal",
    "quniform",
    "randint",
    "register_env",
    "register_trainable",
    "replay_schedule",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "uniform",
    "wrap_function",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
