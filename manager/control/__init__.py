"""Changing a running experiment from another process."""

from .connection import ControlError, ControlServer, ask_manager
from .extension import Extension, ExtensionError, extend_experiment
from .operations import LiveChanges
from .steering import (
    add_trial,
    add_trials,
    change_experiment,
    import_results,
    kill_trial,
    rerun_trial,
    stop_experiment,
)
from .trial_reading import read_running, tell_part

__all__ = [
    "ControlError",
    "ControlServer",
    "Extension",
    "ExtensionError",
    "LiveChanges",
    "add_trial",
    "add_trials",
    "ask_manager",
    "change_experiment",
    "extend_experiment",
    "import_results",
    "kill_trial",
    "read_running",
    "rerun_trial",
    "stop_experiment",
    "tell_part",
]
