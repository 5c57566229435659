"""Where trials run: numbered slots, lowest first, and the agents that stand behind them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Mapping

from .trial import Trial

__all__ = ["Slots"]


class Slots:
    """Slots 0, 1, 2 ... as they are needed, each held by one trial at a time.

    A slot's agent is named after the slot and counts how often it was lost: a lost agent's name is never used again,
    because it may still live where nobody reaches it.
    """

    def __init__(self) -> None:
        self._taken: dict[int, Trial] = {}
        self._freed: list[int] = []
        self._lost: Counter[int] = Counter()

    def __len__(self) -> int:
        """How many are taken."""
        return len(self._taken)

    def take(self, trial: Trial, avoiding: Container[str] = ()) -> None:
        """Give the lowest free slot whose agent is not one of `avoiding` to `trial`, and that agent."""
        avoided = []
        while self._freed and self._agent(self._freed[0]) in avoiding:
            avoided.append(heapq.heappop(self._freed))
        # The slots ever used are those taken and those freed.
        slot = heapq.heappop(self._freed) if self._freed else len(self._taken) + len(avoided)
        for each in avoided:
            heapq.heappush(self._freed, each)
        self._taken[slot] = trial
        trial.slot, trial.agent = slot, self._agent(slot)

    def first_agents(self, count: int) -> list[str]:
        """Return the agents of the lowest slots, of which none was lost yet."""
        return [f"{slot}-0" for slot in range(count)]

    def free(self, trial: Trial) -> None:
        """Take back what `trial` holds."""
        if trial.slot is not None:
            del self._taken[trial.slot]
            heapq.heappush(self._freed, trial.slot)
            trial.slot = None

    def lose(self, agent: str) -> None:
        """An agent is lost: its slot gets another one next time."""
        slot = int(agent.partition("-")[0])
        if agent == self._agent(slot):
            self._lost[slot] += 1

    def _agent(self, slot: int) -> str:
        return f"{slot}-{self._lost[slot]}"

    def restore(self, trials: Mapping[int, Trial], lost: Mapping[str, int]) -> None:
        """Take up the slots that a store holds; `lost` is what `snapshot` told."""
        self._taken = dict(trials)
        highest = max(trials, default=-1)
        self._freed = [slot for slot in range(highest) if slot not in trials]
        self._lost = Counter({int(slot): count for slot, count in lost.items()})

    def snapshot(self) -> dict[str, int]:
        """How often each slot's agent was lost, as plain JSON."""
        return {str(slot): count for slot, count in self._lost.items()}

    def invariants(self) -> list[str]:
        """Return what is wrong; nothing, if all is well."""
        wrong = []
        if sorted([*self._taken, *self._freed]) != list(range(len(self._taken) + len(self._freed))):
            wrong.append("slots are neither taken nor free")
        for slot, trial in self._taken.items():
            if trial.slot != slot or trial.status.is_final:
                wrong.append(f"slot {slot} holds trial {trial.trial_id}, which does not run there")
        return wrong
