"""The last resort of a run that must end: kill every descendant of this process.

The dispatcher, the agents and the trials have sessions of their own, but are still descendants.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import psutil

__all__ = ["Deadline", "kill_descendants"]

_LOOKS = 20
_BETWEEN_LOOKS = 0.05


def kill_descendants() -> None:
    """Kill all descendants of this process at once.

    Does not wait: the parent of each process collects its exit code.
    """
    # The next pass finds processes forked during this one.
    for _ in range(_LOOKS):
        if not [process for process in psutil.Process().children(recursive=True) if _kill(process)]:
            return
        time.sleep(_BETWEEN_LOOKS)


def _kill(process: psutil.Process) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


class Deadline:
    """Ends this process, whatever it waits for, `seconds` after `start` (a second `start` does nothing).

    `last_words` is called first, on another thread.
    """

    def __init__(self, exit_code: int, last_words: Callable[[], None]) -> None:
        self._exit_code = exit_code
        self._last_words = last_words
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """Start counting."""
        if self._timer is None:
            self._timer = threading.Timer(seconds, self._end)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """Stop counting: the work ended in time."""
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        kill_descendants()
        try:
            self._last_words()
        finally:
            os._exit(self._exit_code)
