"""Users' code that follows an experiment: callbacks and stoppers."""

from __future__ import annotations

from .hooks import Callback, Hooks, PlainExperiment, experiment_row
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
