"""Where trials run: numbered slots, the lowest first, the agent of each, and the trials that queue there."""

from __future__ import annotations

import heapq
import sys
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from .trial import Trial


class Slots:
    """Slots 0, 1, 2 ... as they are needed, each held by one trial at a time; others may queue for it.

    An agent's name consists of its slot and of how many agents that slot has lost: a lost agent may still live where it
    cannot be reached, so its name is never used again.
    """

    def __init__(self) -> None:
        # No list is empty: its first trial runs, the others queue in the order in which they will run. Each has this
        # number as its `slot`, and a trial with a slot is in exactly one list.
        self._taken: dict[int, list[Trial]] = {}
        # A heap of the slots that were taken before and are free now. Together with `_taken` it has all numbers from 0
        # to the highest slot ever used: so the next new slot is the number of both.
        self._freed: list[int] = []
        self._lost: Counter[int] = Counter()  # how many agents a slot has lost; it only grows

    def __len__(self) -> int:
        """Return how many slots are taken."""
        return len(self._taken)

    def take(self, trial: Trial, avoiding: Container[str] = ()) -> None:
        """Give the lowest free slot whose agent is not one of `avoiding` to `trial`, and that agent."""
        avoided = []
        while self._freed and self._agent(self._freed[0]) in avoiding:
            avoided.append(heapq.heappop(self._freed))
        # All slots ever used are either taken or freed.
        slot = heapq.heappop(self._freed) if self._freed else len(self._taken) + len(avoided)
        for each in avoided:
            heapq.heappush(self._freed, each)
        self._taken[slot] = [trial]
        trial.slot, trial.agent = slot, self._agent(slot)

    def queue(self, trial: Trial, most: int, *, since: float, avoiding: Container[str] = ()) -> Trial | None:
        """Queue `trial` on the slot with the shortest queue; return the trial ahead of it, or None if all hold `most`.

        A slot whose trial began before `since` takes no more. Only new trials queue, the older ones first: so their
        order is known after a restart.
        """
        queues = [
            trials for trials in self._taken.values() if self._may_queue(trial, trials, since, avoiding)
        ]
        queue = min(queues, key=len, default=None)
        if queue is None or len(queue) >= most:
            return None
        before = queue[-1]
        queue.append(trial)
        trial.slot, trial.agent = before.slot, before.agent
        return before

    def _may_queue(
        self, trial: Trial, trials: Sequence[Trial], since: float, avoiding: Container[str]
    ) -> bool:
        first, last = trials[0], trials[-1]
        if first.start_time is not None and first.start_time < since:
            return False
        slot, agent = last.slot, last.agent
        if slot is None or agent is None or agent in avoiding or agent != self._agent(slot):
            return False
        return last.attempt > 1 or last.sequence_id < trial.sequence_id

    def before(self, trial: Trial) -> Trial | None:
        """Return the trial that holds the slot where `trial` queues; None if that is itself."""
        first = trial if trial.slot is None else self._taken[trial.slot][0]
        return None if first is trial else first

    def trials(self) -> list[Trial]:
        """Return all trials that hold a slot or queue, slot by slot in the order in which they run."""
        return [trial for slot in sorted(self._taken) for trial in self._taken[slot]]

    def first_agents(self, count: int) -> list[str]:
        """Return the first agents of the lowest slots."""
        return [f"{slot}-0" for slot in range(count)]

    def free(self, trial: Trial) -> Trial | None:
        """Free the place of `trial`, if it has one; return the trial that holds the slot from now on."""
        if trial.slot is None:
            return None
        queue, slot = self._taken[trial.slot], trial.slot
        is_first = queue[0] is trial
        queue.remove(trial)
        trial.slot = None
        if not queue:
            del self._taken[slot]
            heapq.heappush(self._freed, slot)
        return queue[0] if queue and is_first else None

    def lose(self, agent: str) -> None:
        """Give the slot of a lost agent another one next time."""
        slot = int(agent.partition("-")[0])
        if agent == self._agent(slot):
            self._lost[slot] += 1

    def _agent(self, slot: int) -> str:
        return sys.intern(f"{slot}-{self._lost[slot]}")  # one string for all trials of an agent

    def restore(self, trials: Iterable[Trial], lost: Mapping[str, int]) -> list[Trial]:
        """Restore the slots of trials, and return those that hold them; `lost` is from `snapshot`."""
        self._taken = {}
        for trial in sorted(trials, key=lambda trial: (trial.attempt == 1, trial.sequence_id)):
            if trial.slot is not None:
                self._taken.setdefault(trial.slot, []).append(trial)
        highest = max(self._taken, default=-1)
        self._freed = [slot for slot in range(highest) if slot not in self._taken]
        self._lost = Counter({int(slot): count for slot, count in lost.items()})
        return [queue[0] for queue in self._taken.values()]

    def snapshot(self) -> dict[str, int]:
        """Return how many agents each slot has lost, as plain JSON values."""
        return {str(slot): count for slot, count in self._lost.items()}
