"""Where trials run: the contract of an executor, and what several executors share."""

from __future__ import annotations

from .base import Cursors, ExecutorError, RunSetup, TrialExecutor
from .heartbeat import Heartbeat

__all__ = [
    "Cursors",
    "ExecutorError",
    "Heartbeat",
    "RunSetup",
    "TrialExecutor",
]
