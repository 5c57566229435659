"""The process that runs an experiment: the loop, the link to the dispatcher, control from outside, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .experiments import (
        create_experiment,
        directory_of,
        experiment_config,
        resume_experiment,
        warm_start_faults,
        warm_start_notes,
        why_outside,
    )
    from .manager import Manager
    from .nni_import import import_nni_experiment
    from .search_session import (
        OtherSearchError,
        PausesError,
        SearchSession,
        TrialOverError,
        UnknownTrialError,
    )
    from .settings import most_at_once, run_of
    from .standby import StandbyDispatcher
    from .startable import faults_at_start
    from .trace import Trace

_HOMES = {
    ".experiments": "create_experiment directory_of experiment_config resume_experiment"
    " warm_start_faults warm_start_notes why_outside",
    ".manager": "Manager",
    ".nni_import": "import_nni_experiment",
    ".search_session": "OtherSearchError PausesError SearchSession TrialOverError UnknownTrialError",
    ".settings": "most_at_once run_of",
    ".standby": "StandbyDispatcher",
    ".startable": "faults_at_start",
    ".trace": "Trace",
}

__all__ = [
    "Manager",
    "OtherSearchError",
    "PausesError",
    "SearchSession",
    "StandbyDispatcher",
    "Trace",
    "TrialOverError",
    "UnknownTrialError",
    "create_experiment",
    "directory_of",
    "experiment_config",
    "faults_at_start",
    "import_nni_experiment",
    "most_at_once",
    "resume_experiment",
    "run_of",
    "warm_start_faults",
    "warm_start_notes",
    "why_outside",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
