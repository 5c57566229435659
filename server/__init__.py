"""The server: reads the stores of experiments and serves the HTTP API, figures and pages.

It runs in a separate process or in the user's. It only reads the databases of experiments, so it works when no
manager runs, and it requests changes through the manager's control socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from ..store.reading import Condition, ExperimentView, QueryError, TrialQuery
    from .experiment_table import read_table
    from .experiments import Experiments
    from .health import early_stopping_note, read_health
    from .process import TOKEN_VARIABLE, ServerError, ServerProcess, require_server
    from .security import SecurityError, ServerSettings, is_loopback
    from .serving import Serving, ServingError
else:
    __getattr__ = lazy_names(__name__, __file__)

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
    "early_stopping_note",
    "is_loopback",
    "read_health",
    "read_table",
    "require_server",
]
