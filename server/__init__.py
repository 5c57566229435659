"""Seeing and steering an experiment from outside its manager: reading its store, the HTTP API, figures, pages.

Everything here runs in a process of its own or in the user's: it reads the experiment's database read-only, so that it
works also when nothing else runs, and asks for changes through the manager's control socket.
"""

from __future__ import annotations

from ..store.reading.trial_query import Condition, QueryError, TrialQuery
from ..store.reading.view import ExperimentView

__all__ = ["Condition", "ExperimentView", "QueryError", "TrialQuery"]
