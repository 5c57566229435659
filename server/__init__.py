"""The server: reads the stores of experiments and serves the HTTP API, figures and pages.

It runs in a separate process or in the user's. It only reads the databases of experiments, so it works when no
manager runs, and it requests changes through the manager's control socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from ..store.reading import Condition, ExperimentView, QueryError, TrialQuery
    from .experiment_table import read_importance, read_table
    from .experiments import Experiments
    from .health import early_stopping_note, read_health
    from .process import SHARE_VARIABLE, TOKEN_VARIABLE, ServerError, ServerProcess, require_server
    from .secrecy import hidden_values
    from .security import SecurityError, ServerSettings, is_loopback, reads_only, url_for_others
    from .serving import Serving, ServingError
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "SHARE_VARIABLE",
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
    "hidden_values",
    "is_loopback",
    "read_health",
    "read_importance",
    "read_table",
    "reads_only",
    "require_server",
    "url_for_others",
]
