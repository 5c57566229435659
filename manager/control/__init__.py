"""Changing a running experiment from another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .connection import ControlError, ask_manager, manager_status, read_running, why_waiting
    from .extension import (
        EXTENDED,
        CurrentLimits,
        Extension,
        ExtensionError,
        continue_experiment,
        extend_experiment,
        options_to_extend,
        owned_store,
        with_code_in,
    )
    from .host import RunningManager, why_failed
    from .operations import TrialIds
    from .steering import (
        add_trial,
        add_trials,
        change_experiment,
        import_results,
        kill_trial,
        rename_experiment,
        rerun_trial,
        stop_experiment,
    )
else:
    __getattr__ = lazy_names(__name__, __file__)
