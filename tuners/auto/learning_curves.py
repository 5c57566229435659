"""Predicts the final results of trials that were stopped or still run from their intermediate ones.

The value of an early stage is never taken for a final one. The prediction is the best value of the trial so far plus,
for each later stage and for the final result, the median change of the trials that got there. Medians of changes are
used instead of a regression on early values: those are noisy, so a fitted slope is too flat and makes all stopped
trials look alike.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

import numpy as np

from ...numerics import Floats, Ints

_ALL_UP_TO = 32  # results of later stages are kept at this number times powers of 2^(1/4)
_MEMORY = 200  # latest changes into a stage that the median is taken of


@dataclass(frozen=True, slots=True, eq=False)
class KnownLosses:
    """Losses of rows, final or predicted, that can be compared; shape (k,) each."""

    rows: Ints
    losses: Floats

    def take(self, places: Ints) -> KnownLosses:
        """Return the entries at these places."""
        return KnownLosses(self.rows[places], self.losses[places])


class LearningCurves:
    """The intermediate losses of trials by row of the history: the last stage of each, and its best loss so far.

    >>> curves = LearningCurves()
    >>> for row in range(5):
    ...     curves.note(row, 1, 4.0 + row)
    ...     curves.note(row, 2, 1.0 + row)
    >>> curves.note(5, 1, 10.0)
    >>> curves.comparable({}).losses.tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    """

    def __init__(self) -> None:
        self._latest: dict[int, tuple[int, float]] = {}
        # Changes of the best loss of the latest trials: into each stage, and to the final result.
        self._changes: dict[int, deque[float]] = {}
        self._to_final: deque[float] = deque(maxlen=_MEMORY)
        self._finished: set[int] = set()

    def __len__(self) -> int:
        return len(self._latest)

    def __contains__(self, row: int) -> bool:
        return row in self._latest

    @property
    def unfinished(self) -> int:
        """The number of trials that had no final result at the last call of `comparable`."""
        return len(self._latest) - len(self._finished)

    def note(self, row: int, stage: int, loss: float) -> None:
        """Record the loss of a row after so many steps; ignore one that is not finite. Costs O(1)."""
        before, best = self._latest.get(row, (0, math.inf))
        if stage <= before or not math.isfinite(loss):
            return
        if not _is_kept(stage):
            if before:
                self._latest[row] = before, min(best, loss)
            return
        if before:
            self._changes.setdefault(stage, deque(maxlen=_MEMORY)).append(min(loss - best, 0.0))
        self._latest[row] = stage, min(best, loss)

    def forget(self, row: int) -> None:
        """Leave out a trial that failed."""
        self._latest.pop(row, None)

    def comparable(self, finals: dict[int, float]) -> KnownLosses:
        """Return the final losses, `finals` by row, and the predicted losses of the other rows."""
        for row, loss in finals.items():
            if row in self._latest and row not in self._finished:
                self._finished.add(row)
                self._to_final.append(loss - self._latest[row][1])
        ahead = self._ahead()
        unknown = {
            row: loss + ahead[stage] for row, (stage, loss) in self._latest.items() if row not in finals
        }
        rows = np.array([*finals, *unknown], dtype=np.int64)
        return KnownLosses(rows, np.array([*finals.values(), *unknown.values()]))

    def _ahead(self) -> dict[int, float]:
        """Return the change from each stage to the end: the sum of those in between."""
        change = median(self._to_final) if self._to_final else 0.0
        ahead: dict[int, float] = {}
        for stage in sorted({*self._changes, *(stage for stage, _ in self._latest.values())}, reverse=True):
            ahead[stage] = change
            if stage in self._changes:
                change += median(self._changes[stage])
        return ahead


def _is_kept(stage: int) -> bool:
    if stage <= _ALL_UP_TO:
        return stage > 0
    octave = math.floor(4 * math.log2(stage / _ALL_UP_TO) + 1e-9)
    return stage == math.ceil(_ALL_UP_TO * 2 ** (octave / 4) - 1e-9)
