"""Where the processor time of a function trial goes: by process, and with `--parts 1` by part of the manager.

What the processes used is read twice: after a tenth of the trials, so that the cost of starting is left out, and at the
end. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from harness import answer, options
from ours import run

from pitchpipe.executors.agents import AgentTrialExecutor
from pitchpipe.manager.dispatcher_link.session import DispatcherSession
from pitchpipe.manager.turn import TurnLoop
from pitchpipe.store import Store

MARK = "BENCHMARK_PROBE"
# The parts of a turn. What lies outside them is the event loop: its polls, reads and callbacks.
PARTS = (
    ("receiving", DispatcherSession, "_on_frames"),
    ("receiving", AgentTrialExecutor, "on_batch"),
    ("deciding", TurnLoop, "_handle"),
    ("committing", Store, "commit"),
    ("sending", TurnLoop, "_act"),
)


def trial(parameters: dict[str, Any]) -> float:
    return parameters["x"]


def used() -> Counter[str]:
    """Return the seconds of CPU by process, and how often a thread waited, of all that this probe started."""
    found: Counter[str] = Counter()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):  # it has ended
            if process.environ().get(MARK) == os.environ[MARK]:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    nanoseconds = int((task / "schedstat").read_text().split()[0])
                    found.update({role_of(process): nanoseconds / 1e9, "waits": waits_of(task)})
    return found


def role_of(process: psutil.Process) -> str:
    line = " ".join(process.cmdline())
    if process.pid == os.getpid():
        return "manager"
    if "pitchpipe.dispatcher" in line:
        return "dispatcher"
    return "agents" if "trial_agent" in line or line.startswith("ray::") else "others"


def waits_of(task: Path) -> int:
    lines = (task / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def watch(size: int) -> list[tuple[int, Counter[str]]]:
    """Return a list that gets, twice, the number of trials made and what was used until then."""
    looks: list[tuple[int, Counter[str]]] = []
    due = [size // 10, size - 2]
    take_turn = TurnLoop.turn

    def watched(loop: TurnLoop) -> None:
        take_turn(loop)
        spent["turns"] += 1
        if due and loop.runner is not None and loop.runner.created >= due[0]:
            del due[0]
            looks.append((loop.runner.created, used() + spent))

    TurnLoop.turn = watched
    return looks


def time_part(part: str, owner: type, name: str) -> None:
    work = getattr(owner, name)

    def timed(*args: Any) -> Any:
        began = time.thread_time()
        try:
            return work(*args)
        finally:
            spent[part] += time.thread_time() - began

    setattr(owner, name, timed)


chosen = options(platform="local", parts=0)
spent: Counter[str] = Counter()
for each in PARTS if chosen.parts else ():
    time_part(*each)
looks = watch(chosen.size)
run(trial, chosen.size, platform=chosen.platform)
(first, before), (last, after) = looks
figures = {name: (after[name] - before[name]) / (last - first) for name in after}
processes = ("manager", "dispatcher", "agents", "others")
answer(**figures, total=sum(figures.get(name, 0.0) for name in processes))
