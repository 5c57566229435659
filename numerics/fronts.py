"""Points of several losses in fronts, and how isolated each is; tuners and assessors rank trials by both.

Deb et al., NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002 (fronts and crowding distances)
Li et al., Efficient Nondomination Level Update, IEEE Transactions on Cybernetics 47(9), 2017 (points come and go)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress
from operator import le, not_

__all__ = ["Fronts", "crowding_distances"]

Point = tuple[float, ...]


class Fronts:
    """Points in fronts: nothing dominates the first; without it, nothing dominates the second; and so on.

    >>> fronts = Fronts([(0.0, 2.0), (2.0, 2.0), (1.0, 1.0)])
    >>> fronts.ranked, fronts.rank((3.0, 1.5))
    ([[(0.0, 2.0), (1.0, 1.0)], [(2.0, 2.0)]], 1)
    """

    def __init__(self, points: Iterable[Point] = ()) -> None:
        self.ranked: list[list[Point]] = []
        for point in sorted(points):  # what dominates a point comes before it, so that none has to move
            self.add(point)

    def rank(self, point: Point) -> int:
        """Return the number of the front to which a point belongs, from 0."""
        # A point that a front dominates is also dominated by each front before it.
        return bisect_left(self.ranked, True, key=lambda front: not _is_dominated(point, front))

    def add(self, point: Point) -> None:
        """Add a point; what it dominates moves to the next front, what that dominates to the one after, and so on."""
        rank, moved = self.rank(point), [point]
        while moved:
            front = self.ranked[rank] if rank < len(self.ranked) else []
            beaten = [_is_dominated(other, moved) for other in front]
            if all(beaten):  # then all later fronts move by one
                self.ranked.insert(rank, moved)
                return
            self.ranked[rank] = [*compress(front, map(not_, beaten)), *moved]
            rank, moved = rank + 1, list(compress(front, beaten))

    def remove(self, point: Point) -> None:
        """Remove a point that was added; what nothing else of its front dominates moves to that front, and so on."""
        rank = self.rank(point)
        self.ranked[rank].remove(point)
        while self.ranked[rank]:
            front = self.ranked[rank + 1] if rank + 1 < len(self.ranked) else []
            stays = [_is_dominated(other, self.ranked[rank]) for other in front]
            if all(stays):
                return
            self.ranked[rank] += compress(front, map(not_, stays))
            self.ranked[rank + 1] = list(compress(front, stays))
            rank += 1
        del self.ranked[rank]  # all later fronts move by one


def _is_dominated(point: Point, others: Sequence[Point]) -> bool:
    return any(other != point and all(map(le, other, point)) for other in reversed(others))


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
