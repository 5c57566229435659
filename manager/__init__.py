"""The process that runs an experiment: the loop, the link to the dispatcher, control from outside, hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .earlier_results import optuna_storage
    from .experiment_factory import (
        code_notes,
        create_experiment,
        directory_of,
        experiment_config,
        reasons_outside,
        resume_experiment,
        warm_start_faults,
        warm_start_notes,
    )
    from .manager import Manager
    from .run_settings import run_of
    from .search_session import (
        OtherSearchError,
        PausesError,
        SearchSession,
        TrialOverError,
        UnknownTrialError,
    )
    from .standby import StandbyDispatcher
    from .startable import faults_at_start, most_at_once
    from .trace import Trace
else:
    __getattr__ = lazy_names(__name__, __file__)
