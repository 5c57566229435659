"""Where trials run: the contract of an executor, and what several executors share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .errors import ExecutorError
    from .tasks import SUSPECT_AFTER, Heartbeat, Tasks, in_thread_or_here
    from .trial_executor import Cursors, RunSetup, TrialExecutor
else:
    __getattr__ = lazy_names(__name__, __file__)
