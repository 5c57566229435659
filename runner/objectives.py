"""Which trials are the best: one for one objective, the Pareto front for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .trial import Trial

__all__ = ["BestTrials", "Objective"]

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True, slots=True)
class Objective:
    """A named metric and which way is better."""

    name: str = "default"
    direction: Direction = "minimize"


class BestTrials:
    """The best of the trials added so far.

    With one objective it is one trial (the earlier one of equals); with several, all that no other dominates.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self._signs = tuple(1.0 if objective.direction == "minimize" else -1.0 for objective in objectives)
        self.front: list[Trial] = []

    def add(self, trial: Trial) -> None:
        """Add a finished trial; one without values does not count."""
        if trial.values is None:
            return
        if (
            len(self._signs) == 1 and self.front
        ):  # the usual case, needed for every trial of a resumed experiment
            best, sign = self.front[0].values, self._signs[0]
            if best is not None and sign * best[0] <= sign * trial.values[0]:
                return
        if any(self._beats_or_equals(other, trial) for other in self.front):
            return
        self.front = [other for other in self.front if not self._beats_or_equals(trial, other)]
        self.front.append(trial)

    def _beats_or_equals(self, one: Trial, other: Trial) -> bool:
        pairs = list(zip(self._signs, one.values or (), other.values or (), strict=True))
        if len(pairs) > 1 and one.values == other.values:
            return False
        return all(sign * mine <= sign * theirs for sign, mine, theirs in pairs)
