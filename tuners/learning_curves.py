"""What the intermediate results of trials say about results that nobody has: of trials that were stopped, or still run.

A value of an early stage is never taken for a final one. The stage that is modelled is the final result as soon as
enough trials have one, before that the furthest stage that enough trials have come to (as in Falkner et al., BOHB, ICML
2018); what trials had at an earlier stage is carried over by a straight line through the trials that have both, and
counts less the worse that line fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .layout import Floats, Ints

FINAL = math.inf  # the stage of final results
_ALL_UP_TO = 32  # results of later stages are kept at this number times powers of 2^(1/4)
_PAIRS = 4  # trials with both stages before anything is carried over
_SLOPES = (0.1, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Losses at one stage, (k,), of the rows (k,); `doubt` (k,) is the share of variance that a carried one lacks."""

    rows: Ints
    losses: Floats
    doubt: Floats

    def take(self, places: Ints) -> Stage:
        """Return the entries at these places."""
        return Stage(self.rows[places], self.losses[places], self.doubt[places])


class LearningCurves:
    """The intermediate losses of trials, by row of the history.

    >>> curves = LearningCurves()
    >>> for row in range(6): curves.note(row, 1, row); curves.note(row, 2, row / 2)
    >>> curves.note(6, 1, 10.0)
    >>> stage = curves.stage({}, enough=6)
    >>> stage.rows.tolist(), stage.losses.round(6).tolist()
    ([0, 1, 2, 3, 4, 5, 6], [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 5.0])
    """

    def __init__(self) -> None:
        self._curves: dict[int, dict[float, float]] = {}
        self._reached: dict[float, int] = {}  # how many trials have a loss at a stage

    def __len__(self) -> int:
        return len(self._curves)

    def note(self, row: int, stage: int, loss: float) -> None:
        """Note the loss of a row after so many steps; only some of the late ones are kept. Costs O(1)."""
        if not math.isfinite(loss) or not _is_kept(stage):
            return
        curve = self._curves.setdefault(row, {})
        if stage not in curve:
            self._reached[stage] = self._reached.get(stage, 0) + 1
        curve[stage] = loss

    def stage(self, finals: dict[int, float], enough: int) -> Stage:
        """Return what is known and carried over for the furthest stage that `enough` trials have come to.

        `finals` are the final losses by row.
        """
        if len(finals) >= enough:
            target = FINAL
        else:
            target = max((s for s, count in self._reached.items() if count >= enough), default=0.0)
            target = target or min(self._reached, default=FINAL)
        return self._carried(finals, target)

    def _carried(self, finals: dict[int, float], target: float) -> Stage:
        measured = finals if target == FINAL else self._at(self._curves, target)
        rows, losses, doubt = list(measured), list(measured.values()), [0.0] * len(measured)
        lines: dict[float, _Line | None] = {}
        for row, curve in self._curves.items():
            latest = max((s for s in curve if s <= target), default=None)
            if row in measured or row in finals or latest is None:
                continue
            if latest not in lines:
                lines[latest] = self._line(latest, measured)
            line = lines[latest]
            if line is not None:
                rows.append(row)
                losses.append(line.slope * (curve[latest] - line.x) + line.y)
                doubt.append(line.doubt)
        return Stage(np.array(rows, dtype=np.int64), np.array(losses), np.array(doubt))

    def _at(self, rows: Iterable[int], stage: float) -> dict[int, float]:
        return {row: self._curves[row][stage] for row in rows if stage in self._curves[row]}

    def _line(self, stage: float, measured: dict[int, float]) -> _Line | None:
        """Return the line from losses at a stage to those at the target, None if too few trials have both."""
        both = [
            (self._curves[row][stage], loss)
            for row, loss in measured.items()
            if stage in self._curves.get(row, ())
        ]
        return _Line.through(both) if len(both) >= _PAIRS else None


@dataclass(frozen=True, slots=True)
class _Line:
    """Through the medians, with the slope of least squares within limits."""

    x: float
    y: float
    slope: float
    doubt: float

    @classmethod
    def through(cls, pairs: Sequence[tuple[float, float]]) -> _Line:
        early, late = np.array(pairs).T
        x, y = float(np.median(early)), float(np.median(late))
        dx, dy = early - x, late - y
        spread = float(dx @ dx)
        slope = float(np.clip((dx @ dy) / spread, *_SLOPES)) if spread > 0 else 1.0
        total = float(dy @ dy)
        unexplained = float(((dy - slope * dx) ** 2).sum()) / total if total > 0 else 0.0
        return cls(x, y, slope, min(unexplained, 1.0))


def _is_kept(stage: int) -> bool:
    if stage <= _ALL_UP_TO:
        return stage > 0
    octave = math.floor(4 * math.log2(stage / _ALL_UP_TO) + 1e-9)
    return stage == math.ceil(_ALL_UP_TO * 2 ** (octave / 4) - 1e-9)
