"""Metrics with few levels: accuracies on few examples, also as means over folds of unequal sizes."""

from __future__ import annotations

import numpy as np

from ...numerics import Floats

_BEST = 6  # distinct losses that show how far levels are apart
_APART = 0.25  # of the largest gap between them: less is a difference within a level


def plateau_size(losses: Floats) -> int:
    """Return how many losses, ascending, are on the best level; 0 unless half of these are equal.

    Shape (n,), inf for failures. Only the best levels are looked at, however many losses there are.

    >>> plateau_size(np.array([0.1, 0.101, 0.101, 0.2, 0.2, 0.2, 0.3]))
    3
    """
    finite, ends = losses[: np.searchsorted(losses, np.inf)], [0]
    while ends[-1] < len(finite) and len(ends) <= _BEST:
        ends.append(int(np.searchsorted(finite, finite[ends[-1]], side="right")))
    values, counts = finite[ends[:-1]], np.diff(ends)
    gaps = np.diff(values)
    last = int(np.argmax(gaps >= _APART * gaps.max())) if len(gaps) else 0
    on_level = counts[: last + 1]
    return int(on_level.sum()) if 2 * on_level.max(initial=0) >= on_level.sum() else 0
