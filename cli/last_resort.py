"""The last resort of a run that must end: kill every process that descends from ours.

The dispatcher and the agents are in sessions of their own, but they are our descendants; so are the trials.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import psutil

__all__ = ["Deadline", "kill_descendants"]


def kill_descendants() -> int:
    """Kill all processes below ours at once; answers how many they were."""
    killed = 0
    # What forks while we look is found the next time.
    for _ in range(5):
        found = psutil.Process().children(recursive=True)
        alive = [process for process in found if _kill(process)]
        if not alive:
            break
        killed += len(alive)
        psutil.wait_procs(alive, timeout=0.5)
    return killed


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
