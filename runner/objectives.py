"""Which trials are the best: one for one objective, the Pareto front for several."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..protocol import Objective
from .trial import Trial


class BestTrials:
    """The best of the trials added so far that keep all limits.

    `front` has one trial for one objective (the earlier one of equals), for several all that no other dominates. While
    it is empty, `closest` is the trial that exceeds the limits least.
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        numbered = list(enumerate(objectives))
        self._goals = tuple((place, one.sign) for place, one in numbered if one.direction is not None)
        self._limits = tuple((place, one) for place, one in numbered if one.is_limited)
        self.clear()

    def clear(self) -> None:
        """Forget all trials."""
        self._least_violation = math.inf
        self.front: list[Trial] = []
        self._losses: list[tuple[float, ...]] = []  # of the front
        self.closest: Trial | None = None

    def add(self, trial: Trial) -> None:
        """Add a finished trial; one without values does not count."""
        if trial.values is None or not self._is_feasible(trial, trial.values):
            return
        losses = tuple([sign * trial.values[place] for place, sign in self._goals])
        for others in self._losses:
            if _beats(others, losses):
                return
        kept = [place for place, others in enumerate(self._losses) if not _beats(losses, others)]
        self.front = [*(self.front[place] for place in kept), trial]
        self._losses = [*(self._losses[place] for place in kept), losses]

    def points(self) -> dict[int, tuple[float, ...]]:
        """Return the losses of the trials on the front, by their sequence numbers."""
        return {trial.sequence_id: losses for trial, losses in zip(self.front, self._losses, strict=True)}

    def _is_feasible(self, trial: Trial, values: Sequence[float]) -> bool:
        violation = sum([one.violation(values[place]) for place, one in self._limits])
        if violation > 0:
            if not self.front and violation < self._least_violation:
                self._least_violation, self.closest = violation, trial
            return False
        self.closest = None
        return True


def _beats(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether the earlier of two trials leaves no place for the other: of several objectives, equals stay."""
    if len(one) == 1:
        return one[0] <= other[0]
    return one != other and all(mine <= theirs for mine, theirs in zip(one, other, strict=True))
