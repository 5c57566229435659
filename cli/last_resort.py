"""The last resort of a run that must end: kill every process that descends from ours.

The dispatcher and the agents are in sessions of their own, but they are our descendants; so are the trials.
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
    """Kill all processes below ours at once.

    Nothing is waited for here: whoever started a process collects its exit code.
    """
    # What forks while we look is found the next time.
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
    """Ends this process, whatever it hangs in, `seconds` after `start` (which does nothing the second time).

    `last_words` is called before, on another thread.
    """

    def __init__(self, exit_code: int, last_words: Callable[[], None]) -> None:
        self._exit_code = exit_code
        self._last_words = last_words
        self._timer: threading.Timer | None = None

    def start(self, seconds: float) -> None:
        """Begin to count."""
        if self._timer is None:
            self._timer = threading.Timer(seconds, self._end)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """It was in time."""
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        kill_descendants()
        try:
            self._last_words()
        finally:
            os._exit(self._exit_code)
