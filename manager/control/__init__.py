"""Changing a running experiment from another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .connection import ControlError, ask_manager
    from .extension import (
        EXTENDED,
        Extension,
        ExtensionError,
        extend_experiment,
        options_to_extend,
        owned_store,
        with_code_in,
    )
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

_HOMES = {
    ".connection": "ControlError ask_manager",
    ".extension": (
        "EXTENDED Extension ExtensionError extend_experiment options_to_extend owned_store with_code_in"
    ),
    ".host": "RunningManager why_failed",
    ".rate": "RateMeter forecast",
    ".steering": (
        "add_trial add_trials change_experiment import_results kill_trial rename_experiment rerun_trial "
        "stop_experiment"
    ),
    ".trial_reading": "read_running",
}

__all__ = [
    "EXTENDED",
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
    "options_to_extend",
    "owned_store",
    "read_running",
    "rename_experiment",
    "rerun_trial",
    "stop_experiment",
    "why_failed",
    "with_code_in",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
