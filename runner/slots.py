"""Where trials run: numbered slots, the lowest first, and the agent of each."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Mapping

from .trial import Trial

__all__ = ["Slots"]


class Slots:
    """Slots 0, 1, 2 ... as they are needed, each held by one trial at a time.

    An agent's name consists of its slot and of how many agents that slot has lost: a lost agent may still live where it
    cannot be reached, so its name is never used again.
    """

    def __init__(self) -> None:
        self._taken: dict[int, Trial] = {}
        self._freed: list[int] = []
        self._lost: Counter[int] = Counter()

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
        self._taken[slot] = trial
        trial.slot, trial.agent = slot, self._agent(slot)

    def first_agents(self, count: int) -> list[str]:
        """Return the first agents of the lowest slots."""
        return [f"{slot}-0" for slot in range(count)]

    def free(self, trial: Trial) -> None:
        """Free the slot of `trial`, if it has one."""
        if trial.slot is not None:
            del self._taken[trial.slot]
            heapq.heappush(self._freed, trial.slot)
            trial.slot = None

    def lose(self, agent: str) -> None:
        """Give the slot of a lost agent another one next time."""
        slot = int(agent.partition("-")[0])
        if agent == self._agent(slot):
            self._lost[slot] += 1

    def _agent(self, slot: int) -> str:
        return f"{slot}-{self._lost[slot]}"

    def restore(self, trials: Mapping[int, Trial], lost: Mapping[str, int]) -> None:
        """Restore the slots of running trials; `lost` is from `snapshot`."""
        self._taken = dict(trials)
        highest = max(trials, default=-1)
        self._freed = [slot for slot in range(highest) if slot not in trials]
        self._lost = Counter({int(slot): count for slot, count in lost.items()})

    def snapshot(self) -> dict[str, int]:
        """Return how many agents each slot has lost, as plain JSON values."""
        return {str(slot): count for slot, count in self._lost.items()}
