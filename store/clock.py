"""The manager's clock: time of day that does not jump while the process lives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["clock_jump", "clock_mark", "steady_clock"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Less than this (s) is what the clock is corrected by now and then, or the time between two looks.
_NO_JUMP = 1.0


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


def clock_mark() -> dict[str, Any]:
    """How the time of day stands to the seconds since the machine's start: it changes when the clock is set."""
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        boot = ""  # nobody can tell two starts of this machine apart
    return {"boot": boot, "offset": time.time() - _seconds()}


def clock_jump(before: Mapping[str, Any], now: Mapping[str, Any]) -> float:
    """By how many seconds the clock was set between two marks; 0 when nobody can tell.

    >>> clock_jump({"boot": "a", "offset": 100.0}, {"boot": "a", "offset": 3700.0})
    3600.0
    >>> clock_jump({"boot": "a", "offset": 100.0}, {"boot": "b", "offset": 3700.0})
    0.0
    """
    if not now["boot"] or before.get("boot") != now["boot"]:
        return 0.0
    jump = float(now["offset"]) - float(before.get("offset", now["offset"]))
    return jump if abs(jump) >= _NO_JUMP else 0.0


def _seconds() -> float:
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
