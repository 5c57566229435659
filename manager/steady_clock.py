"""The manager's clock: time of day that does not jump while the process lives."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["steady_clock"]


def steady_clock(
    wall: Callable[[], float] = time.time, elapsed: Callable[[], float] | None = None
) -> Callable[[], float]:
    """A clock that begins with the time of day and goes on by the seconds that have passed, whatever is set.

    Somebody who sets the clock of the machine neither ends a trial nor lets it run for ever; times within one life
    of a manager are in order. `elapsed` counts a suspended machine's time, too, where the system can tell.

    >>> clock = steady_clock(wall=iter([1000.0, 5000.0]).__next__, elapsed=iter([7.0, 8.5]).__next__)
    >>> clock()
    1001.5
    """
    passed = elapsed or _seconds
    began, start = wall(), passed()
    return lambda: began + (passed() - start)


def _seconds() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
