"""How isolated a point of a front is; tuners and assessors break ties by it.

Deb et al., A fast and elitist multiobjective genetic algorithm: NSGA-II, IEEE Transactions on Evolutionary Computation
6(2), 2002.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["crowding_distances"]


def crowding_distances(losses: Sequence[Sequence[float]]) -> list[float]:
    """Return the crowding distance of each point: the larger, the more isolated; infinite at both ends of an objective.

    >>> crowding_distances([(0.0, 2.0), (1.0, 1.0), (2.0, 0.0)])
    [inf, 2.0, inf]
    """
    distances = [0.0] * len(losses)
    for column in zip(*losses, strict=True):
        order = sorted(range(len(column)), key=column.__getitem__)
        spread = column[order[-1]] - column[order[0]]
        distances[order[0]] = distances[order[-1]] = math.inf
        if spread > 0:
            for before, place, after in zip(order, order[1:], order[2:], strict=False):
                distances[place] += (column[after] - column[before]) / spread
    return distances
