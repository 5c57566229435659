"""How long a trial has not improved on its own best result: for the plateau and the patient rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Trial:
    """How many results were seen, the best of them, and when it came (counted from 1)."""

    count: int = 0
    best: float = -math.inf
    since: int = 0


class Progress:
    """Follows the best result of each running trial, larger being better; `min_delta` is what counts as an improvement.

    >>> progress = Progress(0.0)
    >>> progress.follow("t", 3, [0.1, 0.5, 0.4].__getitem__).since
    2
    """

    def __init__(self, min_delta: float) -> None:
        self._min_delta = min_delta
        self._trials: dict[str, _Trial] = {}

    def follow(self, trial: str, count: int, gain_at: Callable[[int], float]) -> _Trial:
        """Read the new results of a trial that has `count` in total, and return its state.

        With no more results than before, the trial is in a new attempt.
        """
        state = self._trials.setdefault(trial, _Trial())
        if count <= state.count:
            state = self._trials[trial] = _Trial()
        for i in range(state.count, count):
            gain = gain_at(i)
            if gain > state.best + self._min_delta or state.since == 0:
                state.best, state.since = gain, i + 1
        state.count = count
        return state

    def forget(self, trial: str) -> None:
        """Forget a trial that ended."""
        self._trials.pop(trial, None)
