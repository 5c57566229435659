"""The hypervolume: how much lies between a front and a reference point, which is worse in every objective.

Fonseca, Paquete and Lopez-Ibanez, An Improved Dimension-Sweep Algorithm for the Hypervolume Indicator, CEC 2006 (up to
three objectives: one sweep along the last)
While, Bradstreet and Barone, A Fast Way of Calculating Exact Hypervolumes, IEEE Transactions on Evolutionary
Computation 16(1), 2012 (more: of each point, what those after it do not dominate)
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from operator import lt, sub

from .fronts import Point, front_of

_MARGIN = 0.1  # of the front's range, between its worst values and the reference point


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
