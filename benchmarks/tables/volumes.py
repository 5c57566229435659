"""Pareto fronts and the exact hypervolume of two or three objectives, all minimised.

Not those of `numerics/`: the tasks run in environments that do not have Pitchpipe.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["front_of", "volume"]

Points = Sequence[Sequence[float]]


def front_of(points: Points) -> list[tuple[float, ...]]:
    """Return the points that no other dominates, each once, sorted.

    >>> front_of([[1, 2], [2, 1], [2, 2], [1, 2]])
    [(1, 2), (2, 1)]
    """
    front: list[tuple[float, ...]] = []
    for point in sorted(set(map(tuple, points))):
        # A point that dominates this one is no later, and in two dimensions the last one decides.
        others = front[-1:] if len(point) == 2 else reversed(front)
        if not any(all(a <= b for a, b in zip(other, point, strict=True)) for other in others):
            front.append(point)
    return front


def volume(points: Points, ideal: Sequence[float], worst: Sequence[float]) -> float:
    """Return the share of the box between `ideal` and `worst` that the points dominate.

    >>> volume([[0.0, 0.5], [0.5, 0.0]], [0.0, 0.0], [1.0, 1.0])
    0.75
    >>> volume([[0.0, 0.0, 0.5], [0.5, 0.5, 0.0]], [0.0] * 3, [1.0] * 3)
    0.625
    >>> volume([[0.5, 0.5, 1.0]], [0.0] * 3, [1.0] * 3)  # none lies in the box
    0
    """
    boxes = list(zip(ideal, worst, strict=True))
    scaled = [
        [max(0.0, (value - low) / (high - low)) for value, (low, high) in zip(point, boxes, strict=True)]
        for point in points
    ]
    inside = front_of([point for point in scaled if max(point) < 1.0])
    return _area(inside) if len(boxes) == 2 else _stacked(inside)


def _area(points: Points) -> float:
    area, lowest = 0.0, 1.0
    for first, second in sorted(map(tuple, points)):
        if second < lowest:
            area += (1.0 - first) * (lowest - second)
            lowest = second
    return area


def _stacked(points: Points) -> float:
    """Sum the slices between the values of the third objective."""
    ordered = sorted(points, key=lambda point: point[2])
    tops = [*(point[2] for point in ordered), 1.0][1:]
    return sum(
        (top - point[2]) * _area([other[:2] for other in ordered[: n + 1]])
        for n, (point, top) in enumerate(zip(ordered, tops, strict=True))
        if top > point[2]
    )
