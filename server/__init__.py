"""Seeing and steering an experiment from outside its manager: reading its store, the HTTP API, figures, pages.

Everything here runs in a process of its own or in the user's: it reads the experiment's database read-only, so that it
works also when nothing else runs, and asks for changes through the manager's control socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..store.reading import Condition, ExperimentView, QueryError, TrialQuery
    from .__main__ import TOKEN_VARIABLE
    from .experiment_table import read_table
    from .experiments import Experiments
    from .process import ServerError, ServerProcess
    from .security import SecurityError, ServerSettings, is_loopback
    from .serving import Serving, ServingError
    from .trial_story import ending_of
    from .tune import TuneClient, TuneServer

_HOMES = {
    "Condition": "..store.reading",
    "ExperimentView": "..store.reading",
    "Experiments": ".experiments",
    "QueryError": "..store.reading",
    "SecurityError": ".security",
    "ServerError": ".process",
    "ServerProcess": ".process",
    "ServerSettings": ".security",
    "Serving": ".serving",
    "ServingError": ".serving",
    "TOKEN_VARIABLE": ".__main__",
    "TrialQuery": "..store.reading",
    "TuneClient": ".tune",
    "TuneServer": ".tune",
    "ending_of": ".trial_story",
    "is_loopback": ".security",
    "read_table": ".experiment_table",
}

__all__ = [
    "TOKEN_VARIABLE",
    "Condition",
    "ExperimentView",
    "Experiments",
    "QueryError",
    "SecurityError",
    "ServerError",
    "ServerProcess",
    "ServerSettings",
    "Serving",
    "ServingError",
    "TrialQuery",
    "TuneClient",
    "TuneServer",
    "ending_of",
    "is_loopback",
    "read_table",
]


if not TYPE_CHECKING:  # a type checker must see which names there are

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOMES[name], __name__), name)
