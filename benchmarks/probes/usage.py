"""What the processes of a probe have used of the processor, by what they are. Linux only."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

from pitchpipe.trial_agent import ProcessTree

__all__ = ["used", "waits"]

MARK = "BENCHMARK_PROBE"
# The first line that fits a command line says what a process is.
ROLES = {
    "pitchpipe.dispatcher": "dispatcher",
    "trial_agent": "agents",
    "private_ray": "supervisor",
    "ray::": "agents",
    "/ray/": "ray",
    "pitchpipe run": "manager",
}


def used(me: str) -> Counter[str]:
    """Return the seconds of CPU by role; `me` is that of this process.

    What ended children have used is under `children of` the role of their parent.
    """
    found: Counter[str] = Counter()
    for process in _mine():
        with contextlib.suppress(psutil.Error):  # it has ended
            times, role = process.cpu_times(), _role_of(process, me)
            found[role] += times.user + times.system
            found[f"children of {role}"] += times.children_user + times.children_system
    return found


def waits() -> int:
    """Return how often the threads that live now have waited."""
    found = 0
    for process in _mine():
        for task in Path(f"/proc/{process.pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):  # it has ended
                lines = task.read_text().splitlines()
                found += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return found


def _mine() -> Iterator[psutil.Process]:
    """Yield this process and all that came of it, also those that left its session or overwrote their environment."""
    seen = set[int]()
    for pid in (os.getpid(), *ProcessTree(None, f"{MARK}={os.environ[MARK]}".encode()).members()):
        with contextlib.suppress(psutil.Error):  # it has ended
            process = psutil.Process(pid)
            for one in (process, *process.children(recursive=True)):
                if one.pid not in seen:
                    seen.add(one.pid)
                    yield one


def _role_of(process: psutil.Process, me: str) -> str:
    if process.pid == os.getpid():
        return me
    line = " ".join(process.cmdline())
    return next((role for words, role in ROLES.items() if words in line), "others")
