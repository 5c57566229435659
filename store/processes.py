"""Processes that the store names by their numbers."""

from __future__ import annotations

import psutil

__all__ = ["has_ended"]

_ROUNDING = 1.0  # seconds between the clocks of the system and of its processes


def has_ended(pid: int, moment: float) -> bool:
    """Return whether the process that had this number at a moment has ended; a later one may have the number.

    >>> import os, time
    >>> has_ended(os.getpid(), time.time()), has_ended(os.getpid(), 0.0)
    (False, True)
    """
    try:
        process = psutil.Process(pid)
        is_it = process.create_time() <= moment + _ROUNDING
        return not is_it or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
