"""Where the user's code hears of trials: callbacks and stoppers."""

from __future__ import annotations

from .callbacks import Callback
from .hooks import Hooks
from .rows import experiment_row
from .stoppers import (
    CombinedStopper,
    CriteriaStopper,
    ExperimentPlateauStopper,
    FunctionStopper,
    MaximumIterationStopper,
    Stopper,
    TimeoutStopper,
    TrialPlateauStopper,
    as_stopper,
)

__all__ = [
    "Callback",
    "CombinedStopper",
    "CriteriaStopper",
    "ExperimentPlateauStopper",
    "FunctionStopper",
    "Hooks",
    "MaximumIterationStopper",
    "Stopper",
    "TimeoutStopper",
    "TrialPlateauStopper",
    "as_stopper",
    "experiment_row",
]
