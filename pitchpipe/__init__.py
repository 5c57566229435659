"""Pitchpipe tunes hyper-parameters. Functions for trial scripts are imported at once, everything else on first use.

>>> import pitchpipe
>>> parameters = {"lr": 0.1, **pitchpipe.get_next_parameter()}
>>> pitchpipe.report_final_result(0.9)
Final result: 0.9
"""

# Type checkers do not find the sub-packages: they are beside this folder until the package is built.
# pyright: reportMissingImports=false
from __future__ import annotations

from .trial_agent import (
    Checkpoint,
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

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every script imports this
if TYPE_CHECKING:
    from typing import Any

    from .assessors import Assessor, AssessResult
    from .experiment import Experiment
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
    from .results import ExperimentResult
    from .server import TuneClient, TuneServer
    from .trial_agent import FunctionTrainable, Trainable, TrialStopped, wrap_function
    from .tuners import NoMoreTrialError, Tuner

    __version__: str

_HOMES = {
    "AssessResult": ".assessors.base",
    "Assessor": ".assessors.base",
    "Callback": ".manager.hooks.callbacks",
    "CombinedStopper": ".manager.hooks.stoppers",
    "CriteriaStopper": ".manager.hooks.stoppers",
    "Experiment": ".experiment",
    "ExperimentPlateauStopper": ".manager.hooks.stoppers",
    "ExperimentResult": ".results",
    "FunctionStopper": ".manager.hooks.stoppers",
    "FunctionTrainable": ".trial_agent.trainable",
    "MaximumIterationStopper": ".manager.hooks.stoppers",
    "NoMoreTrialError": ".tuners.tuner",
    "Stopper": ".manager.hooks.stoppers",
    "TimeoutStopper": ".manager.hooks.stoppers",
    "Trainable": ".trial_agent.trainable",
    "TrialPlateauStopper": ".manager.hooks.stoppers",
    "TrialStopped": ".trial_agent.sdk",
    "TuneClient": ".server.tune",
    "TuneServer": ".server.tune",
    "Tuner": ".tuners.tuner",
    "make_env": ".registry",
    "register_env": ".registry",
    "register_trainable": ".registry",
    "wrap_function": ".trial_agent.trainable",
}

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
    "MaximumIterationStopper",
    "NoMoreTrialError",
    "Stopper",
    "TimeoutStopper",
    "Trainable",
    "TrialPlateauStopper",
    "TrialStopped",
    "TuneClient",
    "TuneServer",
    "Tuner",
    "__version__",
    "get_budget",
    "get_checkpoint",
    "get_current_parameter",
    "get_experiment_id",
    "get_next_parameter",
    "get_next_parameters",
    "get_sequence_id",
    "get_trial_id",
    "make_env",
    "register_env",
    "register_trainable",
    "report_final_result",
    "report_intermediate_result",
    "save_checkpoint",
    "wrap_function",
]


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version("pitchpipe")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
