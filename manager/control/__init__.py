"""Changing a running experiment from another process."""

from __future__ import annotations

from .connection import ControlError, ask_manager
from .extension import Extension, ExtensionError, extend_experiment
from .host import RunningManager, why_failed
from .rate import RateMeter, forecast
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
from .trial_reading import read_running

__all__ = [
    "ControlError",
    "Extension",
    "ExtensionError",
    "RateMeter",
    "RunningManager",
    "add_trial",
    "add_trials",
    "ask_manager",
    "change_experiment",
    "extend_experiment",
    "forecast",
    "import_results",
    "kill_trial",
    "read_running",
    "rename_experiment",
    "rerun_trial",
    "stop_experiment",
    "why_failed",
]
