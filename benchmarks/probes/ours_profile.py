"""Where the processor time of a trial goes: by process, and with `--parts 1` by part of the manager.

Trials are functions, or with `--scripts 1` warm scripts.

What the processes used is read twice: after a tenth of the trials, so that the cost of starting is left out, and at the
end. Linux only.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from harness import TRIALS, answer, command, options
from ours import run
from usage import used, waits

from pitchpipe.executors.agents import AgentTrialExecutor
from pitchpipe.manager.dispatcher_link import Dispatcher
from pitchpipe.manager.turn import TurnLoop
from pitchpipe.store import Store

# The parts of a turn. What lies outside them is the event loop: its polls, reads and callbacks.
PARTS = (
    ("receiving", Dispatcher, "_on_frames"),
    ("receiving", AgentTrialExecutor, "on_batch"),
    ("deciding", TurnLoop, "_handle"),
    ("committing", Store, "commit"),
    ("sending", TurnLoop, "_act"),
)


def trial(parameters: dict[str, Any]) -> float:
    return parameters["x"]


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
            now = used("manager")
            now.update(spent, waits=waits())  # a sum of counters would leave out what is 0
            looks.append((loop.runner.created, now))

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


chosen = options(platform="local", parts=0, scripts=0)
spent: Counter[str] = Counter()
for each in PARTS if chosen.parts else ():
    time_part(*each)
looks = watch(chosen.size)
if chosen.scripts:
    run(command(TRIALS / "pitchpipe_noop.py"), chosen.size, trial_start="warm")
else:
    run(trial, chosen.size, platform=chosen.platform)
(first, before), (last, after) = looks
figures = {name: (after[name] - before[name]) / (last - first) for name in after}
counted = ("turns", "waits", *(part for part, _, _ in PARTS))
answer(**figures, total=sum(used for name, used in figures.items() if name not in counted))
