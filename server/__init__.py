"""The server: reads the stores of experiments and serves the HTTP API, figures and pages.

It runs in a separate process or in the user's. It only reads the databases of experiments, so it works when no
manager runs, and it requests changes through the manager's control socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..store.reading import Condition, ExperimentView, QueryError, TrialQuery
    from .experiment_table import read_table
    from .experiments import Experiments
    from .process import TOKEN_VARIABLE, ServerError, ServerProcess
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
    "TOKEN_VARIABLE": ".process",
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
