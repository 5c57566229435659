"""Points of several losses, all to be minimised: their fronts, the knee of a front, and the volume that it dominates.

A point dominates another if it is no worse in any loss and better in one.

Deb et al., NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002 (fronts and crowding distances)
Li et al., Efficient Nondomination Level Update, IEEE Transactions on Cybernetics 47(9), 2017 (points come and go)
Das, On Characterizing the "Knee" of the Pareto Curve, Structural Optimization 18, 1999
Fonseca, Paquete and Lopez-Ibanez, An Improved Dimension-Sweep Algorithm for the Hypervolume Indicator, CEC 2006 (up to
three objectives: one sweep along the last)
While, Bradstreet and Barone, A Fast Way of Calculating Exact Hypervolumes, IEEE Transactions on Evolutionary
Computation 16(1), 2012 (more: of each point, what those after it do not dominate)
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import itemgetter, le, lt, not_, sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .arrays import (  # and numpy below where it is used: readers of fronts do without it
        Bools,
        Floats,
        Ints,
    )

Point = tuple[float, ...]
_STRAIGHT = 1e-9  # of the front's range: nearer to the line, a point is on it
_MARGIN = 0.1  # of the front's range, between its worst values and the reference point


def front_of(points: Mapping[int, Point]) -> dict[int, Point]:
    """Return the points that no other dominates, by their numbers; of equal points, all.

    >>> front_of({0: (1.0, 2.0), 1: (2.0, 2.0), 2: (2.0, 1.0), 3: (1.0, 2.0)})
    {0: (1.0, 2.0), 2: (2.0, 1.0), 3: (1.0, 2.0)}
    """
    numbers, front = list[int](), list[Point]()
    for number, point in sorted(points.items(), key=itemgetter(1)):
        # What dominates a point comes before it in this order.
        if not _is_dominated(point, front):
            numbers.append(number)
            front.append(point)
    return {number: points[number] for number in sorted(numbers)}


def added(front: Sequence[Point], point: Point) -> list[Point] | None:
    """Return a front with one more point; None if the point adds nothing.

    >>> added([(1.0, 2.0), (3.0, 1.0)], (2.0, 1.0))
    [(1.0, 2.0), (2.0, 1.0)]
    """
    if point in front or _is_dominated(point, front):
        return None
    return [other for other in front if not _is_dominated(other, (point,))] + [point]


def is_nondominated(losses: Floats) -> Bools:
    """Return which points no other dominates, shape (n,), for losses of shape (n, m); of equal points, all.

    As `front_of`, for arrays of some hundreds of points: all pairs are compared at once.

    >>> import numpy as np
    >>> is_nondominated(np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 1.0]])).tolist()
    [True, True, False]
    """
    import numpy as np

    no_worse: Bools = np.all(losses[:, None] <= losses[None], axis=2)
    return ~np.any(no_worse & ~no_worse.T, axis=0)


def nondominated_ranks(losses: Floats) -> Ints:
    """Return the rank of each point, shape (n,): 0 on the front, 1 on the front of the others, and so on."""
    import numpy as np

    points = list(map(tuple, losses.tolist()))
    ranks = {point: rank for rank, front in enumerate(Fronts(points).ranked) for point in front}
    return np.array([ranks[point] for point in points], dtype=np.int64)


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


def knee_of(front: Mapping[int, Point]) -> int | None:
    """Return the number of the front's knee; None if no point is better than the line through the front's ends.

    Each objective is scaled to the front's range, 0 for its best value and 1 for its worst. The knee is the point that
    lies farthest, towards the best values, from the line (for more objectives: the plane) through the points that are
    1 in one objective and 0 in the others; for two objectives these are the front's ends. Of equals, the first.

    >>> knee_of({0: (0.0, 1.0), 1: (0.1, 0.2), 2: (0.6, 0.1), 3: (1.0, 0.0)})
    1
    """
    finite = {
        number: tuple(value / 2 for value in point)  # so that differences are finite
        for number, point in front.items()
        if all(map(math.isfinite, point))
    }
    if len(set(finite.values())) < 3:
        return None
    ends = [(min(column), max(column)) for column in zip(*finite.values(), strict=True)]

    def share(point: Point) -> float:  # the distance is (1 - share) / sqrt(objectives)
        return sum(
            (value - low) / ((high - low) or 1.0) for value, (low, high) in zip(point, ends, strict=True)
        )

    shares = {number: share(point) for number, point in finite.items()}
    knee = min(shares, key=lambda number: (shares[number], number))
    return knee if shares[knee] < 1 - _STRAIGHT else None


def hypervolume(points: Iterable[Point], reference: Point) -> float:
    """Return the volume between the points and the reference point, exactly; it is infinite beyond the largest float.

    Points that are not better than the reference in every objective, or not finite, add nothing.

    >>> hypervolume([(1.0, 2.0), (2.0, 1.0), (4.0, 0.0)], (3.0, 3.0))
    3.0
    """
    inside = {point for point in points if -math.inf not in point and all(map(lt, point, reference))}
    volume = _volume(inside, reference)
    return math.inf if math.isnan(volume) else volume


def _volume(points: Collection[Point], reference: Point) -> float:
    """Return the sum of the exclusive volumes: of each point its own, less what those after it share with it.

    In the order from the worst last value to the best, a point shares the whole of its last side with each of those.
    """
    if len(reference) == 1:
        return reference[0] - min(points, default=reference)[0]
    if len(reference) <= 3:
        return _swept(points, reference)
    *inner, bound = reference
    front = sorted(front_of(dict(enumerate(points))).values(), key=lambda point: -point[-1])
    total = 0.0
    for place, (*point, last) in enumerate(front, start=1):
        shared = _volume({tuple(map(max, point, other)) for other in front[place:]}, tuple(inner))
        total += (bound - last) * (math.prod(map(sub, inner, point)) - shared)
    return total


def _swept(points: Collection[Point], reference: Point) -> float:
    """Return the volume for two or three objectives, by the steps of the first two along the third."""
    width, depth, *bound = reference
    steps: list[Point] = [(-math.inf, depth), (width, -math.inf)]
    total, area, height = 0.0, 0.0, 0.0
    for x, y, *z in sorted(points, key=lambda point: point[2:]):
        if z:
            total += area * (z[0] - height)
            height = z[0]
        area += _grown(steps, x, y)
    return total + area * (bound[0] - height) if bound else area


def _grown(steps: list[Point], x: float, y: float) -> float:
    """Add a point to the steps, which descend from left to right; return by how much the area above them grows."""
    first = last = bisect_left(steps, (x,))
    top, left, grown = steps[first - 1][1], x, 0.0
    if top <= y:
        return 0.0
    while steps[last][1] >= y:
        grown += (steps[last][0] - left) * (top - y)
        left, top = steps[last]
        last += 1
    grown += (steps[last][0] - left) * (top - y)
    steps[first:last] = [(x, y)]
    return grown


def reference_of(front: Iterable[Point], given: Sequence[float | None]) -> Point:
    """Return the reference point: what is given, else the worst of the front, moved by 10 % of its range.

    Where all values are equal, it is 10 % of the value, or 0.1.

    >>> reference_of([(0.0, 5.0), (10.0, 5.0)], (None, None))
    (11.0, 5.5)
    """
    finite = [point for point in front if all(map(math.isfinite, point))]
    columns = list(zip(*finite, strict=True)) or [(0.0,)] * len(given)
    return tuple(
        _worst_and_margin(column) if bound is None else bound
        for column, bound in zip(columns, given, strict=True)
    )


def _worst_and_margin(values: Sequence[float]) -> float:
    worst = max(values)
    beyond = worst + _MARGIN * (worst - min(values) or abs(worst) or 1.0)
    return min(beyond, sys.float_info.max)
