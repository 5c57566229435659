"""Points of several objectives, all to be minimised: their front, its hypervolume and its knee."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import le, lt, sub

__all__ = ["Point", "added", "front_of", "hypervolume", "knee_of", "reference_of"]

Point = tuple[float, ...]
_MARGIN = 0.1  # of the front's range, between its worst values and the reference point
_STRAIGHT = 1e-9  # of the front's range: nearer to the line, a point is on it


def front_of(points: Mapping[int, Point]) -> dict[int, Point]:
    """Return the points that no other dominates, by their numbers; of equal points, all.

    >>> front_of({0: (1.0, 2.0), 1: (2.0, 2.0), 2: (2.0, 1.0), 3: (1.0, 2.0)})
    {0: (1.0, 2.0), 2: (2.0, 1.0), 3: (1.0, 2.0)}
    """
    front: list[tuple[Point, int]] = []
    for number, point in sorted(points.items(), key=lambda item: item[1]):
        # What dominates a point comes before it in this order.
        if not any(_dominates(other, point) for other, _ in front):
            front.append((point, number))
    return {number: point for point, number in sorted(front, key=lambda item: item[1])}


def added(front: Sequence[Point], point: Point) -> list[Point] | None:
    """Return a front with one more point; None if the point adds nothing.

    >>> added([(1.0, 2.0), (3.0, 1.0)], (2.0, 1.0))
    [(1.0, 2.0), (2.0, 1.0)]
    """
    if any(_covers(other, point) for other in front):
        return None
    return [other for other in front if not _covers(point, other)] + [point]


def _covers(one: Point, other: Point) -> bool:
    return all(map(le, one, other))


def _dominates(one: Point, other: Point) -> bool:
    return one != other and _covers(one, other)


def hypervolume(points: Iterable[Point], reference: Point) -> float:
    """Return the volume between the points and the reference point, exactly.

    Points that are not better than the reference in every objective, or not finite, add nothing. A volume beyond the
    largest float is infinite. While, Bradstreet and
    Barone, A Fast Way of Calculating Exact Hypervolumes, IEEE Transactions on Evolutionary Computation 16(1), 2012.

    >>> hypervolume([(1.0, 2.0), (2.0, 1.0), (4.0, 0.0)], (3.0, 3.0))
    3.0
    """
    inside = {point for point in points if -math.inf not in point and all(map(lt, point, reference))}
    found = _volume(inside, reference)
    return math.inf if math.isnan(found) else found


def _volume(points: Collection[Point], reference: Point) -> float:
    """Sum, from the worst last value to the best, what each point dominates and those after it do not."""
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
    found = worst + _MARGIN * (worst - min(values) or abs(worst) or 1.0)
    return min(found, sys.float_info.max)


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
