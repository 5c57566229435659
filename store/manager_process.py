"""The process that runs an experiment, and its clock: a time of day that does not jump while the process lives."""

from __future__ import annotations

import fcntl
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypedDict

import psutil

from ..protocol import Json

LOCK = "manager.lock"
"""The file that the process which runs an experiment has locked, in the experiment's folder."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# It keeps counting while the machine is suspended, on systems with such a clock.
_seconds = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
# A smaller difference (s) is a usual correction of the clock, or the time between the two readings.
_NO_JUMP = 1.0
_ROUNDING = 1.0  # seconds between the clocks of the system and of its processes


@dataclass(frozen=True, slots=True)
class ManagerInfo:
    """The process that runs an experiment."""

    pid: int
    host: str
    create_time: float
    clock: Mapping[str, Json] = field(default_factory=dict)

    @property
    def process(self) -> psutil.Process | None:
        """That very process, if it is seen from here; one that has ended and waits for its parent is not."""
        if self.host != socket.gethostname():
            return None
        try:
            process = psutil.Process(self.pid)
            is_it = abs(process.create_time() - self.create_time) < 1.0  # and not of another pid namespace
            return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None


def is_lock_held(folder: Path) -> bool | None:
    """Return whether a process owns an experiment's folder; None if this user, or this file system, cannot tell."""
    try:
        with (folder / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released as the file is closed
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


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


def steady_clock(
    wall: Callable[[], float] = time.time, elapsed: Callable[[], float] | None = None
) -> Callable[[], float]:
    """Return a clock that starts at the time of day and then counts elapsed seconds, even if the system's clock is set.

    So setting the clock neither ends a trial nor lets it run for ever, and times within one life of a manager are in
    order. `elapsed` includes the time for which the machine was suspended, where the system counts it.

    >>> clock = steady_clock(wall=iter([1000.0, 5000.0]).__next__, elapsed=iter([7.0, 8.5]).__next__)
    >>> clock()
    1001.5
    """
    passed = elapsed or _seconds
    began, start = wall(), passed()
    offset = began - start
    return lambda: offset + passed()


class ClockMark(TypedDict):
    """The offset of the time of day from the seconds since the machine's start; setting the clock changes it."""

    boot: str
    offset: float


def clock_mark() -> ClockMark:
    """Return the mark of now."""
    try:
        boot = _BOOT_ID.read_text().strip()
    except OSError:
        boot = ""  # two starts of this machine cannot be told apart
    return {"boot": boot, "offset": time.time() - _seconds()}


def clock_jump(before: Mapping[str, Json], now: ClockMark) -> float:
    """Return by how many seconds the clock was set between two marks; 0 if that is unknown.

    >>> clock_jump({"boot": "a", "offset": 100.0}, {"boot": "a", "offset": 3700.0})
    3600.0
    >>> clock_jump({"boot": "a", "offset": 100.0}, {"boot": "b", "offset": 3700.0})
    0.0
    """
    if not now["boot"] or before.get("boot") != now["boot"]:
        return 0.0
    jump = now["offset"] - float(before.get("offset", now["offset"]))
    return jump if abs(jump) >= _NO_JUMP else 0.0
