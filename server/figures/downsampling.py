"""Curves with fewer points, and fewer curves, that look the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .dimensions import drawable
from .tables import Objective, TrialRecord

Numbers = NDArray[np.float64]


def downsampled(steps: ArrayLike, values: ArrayLike, limit: int) -> tuple[Numbers, Numbers]:
    """Return at most `limit` (at least 4) points of a curve, shapes (n,): its ends, and the extremes of equal pieces.

    Extremes are kept because spikes matter most; NaN and infinities are left out.

    >>> steps, values = downsampled(range(1000), [0.0] * 500 + [9.0] + [0.0] * 499, 10)
    >>> len(steps) <= 10, values.max(), steps[0], steps[-1]
    (True, np.float64(9.0), np.float64(0.0), np.float64(999.0))
    """
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    usable = np.isfinite(drawable(y))
    x, y = x[usable], y[usable]
    if y.size <= max(limit, 4):
        return x, y
    pieces = np.array_split(np.arange(1, y.size - 1), max((limit - 2) // 2, 1))
    extremes = [(int(piece[y[piece].argmin()]), int(piece[y[piece].argmax()])) for piece in pieces]
    kept = sorted({0, y.size - 1, *(index for pair in extremes for index in pair)})
    return x[kept], y[kept]


def chosen_numbers(trials: Sequence[TrialRecord], objective: Objective, limit: int) -> list[int]:
    """Return the numbers of at most `limit` trials to show for all: the best tenth, and others evenly over time.

    >>> trials = [TrialRecord(n, "SUCCEEDED", {}, {"default": -n}) for n in range(100)]
    >>> chosen_numbers(trials, Objective(), 10)
    [0, 12, 24, 36, 49, 61, 73, 85, 98, 99]
    """
    if len(trials) <= limit:
        return sorted(trial.number for trial in trials)
    sign = 1.0 if objective.direction == "minimize" else -1.0
    ranked = [
        (sign * value, one.number) for one in trials if (value := one.value(objective.name)) is not None
    ]
    best = {number for _, number in sorted(ranked)[: max(limit // 10, 1)]}
    others = sorted(trial.number for trial in trials if trial.number not in best)
    places = np.linspace(0, len(others) - 1, limit - len(best)).astype(int)
    return sorted(best | {others[place] for place in places})
