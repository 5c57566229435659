"""Which points of a space were suggested or measured before."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from ...search_space import SearchSpace, identity
from ..tuner import NoMoreTrialError
from .grid import GridWalk

__all__ = ["Explored", "key_of", "measurements", "ready"]

_RESAMPLES = 50  # draws before a point is taken from the grid
_DIGITS = 12  # of a float that distinguish points
_GRID_STEPS = 200_000  # grid points tried for one suggestion before the search ends


class Explored:
    """The memory that keeps a tuner from suggesting the same configuration twice.

    >>> space = SearchSpace.parse({"x": {"_type": "choice", "_value": ["a", "b"]}})
    >>> explored = Explored(space)
    >>> [explored.new_point(lambda: {"x": "a"})["x"] for _ in range(2)]
    ['a', 'b']
    """

    def __init__(self, space: SearchSpace, earlier: Explored | None = None) -> None:
        self.space = space
        self._points: set[Hashable] = set() if earlier is None else earlier._points
        self._walk = GridWalk(space)

    @cached_property
    def is_endless(self) -> bool:
        """Whether no two random points of the space are equal: a continuous parameter is always active."""
        return any(
            each.parent is None and each.size is None and each.q is None for each in self.space.parameters
        )

    def add(self, parameters: dict[str, Any]) -> bool:
        """Remember a point; return whether it is new."""
        key, before = key_of(parameters), len(self._points)
        self._points.add(key)
        return len(self._points) > before

    def forget(self, parameters: dict[str, Any]) -> None:
        """Forget a point, so that it can be suggested again."""
        self._points.discard(key_of(parameters))

    def new_point(self, draw: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the first new point among those drawn, else the next new point of the grid.

        Raises `NoMoreTrialError` when every point was suggested or measured.
        """
        for _ in range(_RESAMPLES):
            point = draw()
            if self.add(point):
                return point
        return self.next_left()

    def next_left(self) -> dict[str, Any]:
        """Return the next point of the grid that is new and satisfies the constraints."""
        for _ in range(_GRID_STEPS):
            vector = self._walk.next()
            if vector is None:
                raise NoMoreTrialError()
            point = self.space.decode(vector)
            if not self.space.violations(point) and self.add(point):
                return point
        raise NoMoreTrialError(f"none of {_GRID_STEPS} further points is new and satisfies the constraints")


def key_of(parameters: dict[str, Any]) -> Hashable:
    """Return a key that equal points share; floats count as equal up to rounding errors.

    A normal value that goes to the unit interval and back may differ from itself in the last digits.
    """
    return identity(parameters, _DIGITS)


def ready(explored: Explored | None) -> Explored:
    """Return `explored`; raise RuntimeError if there is no search space yet."""
    if explored is None:
        raise RuntimeError("a tuner needs update_search_space before anything else")
    return explored


def measurements(explored: Explored, data: Iterable[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield parameters and value of the imported items that are points of the space; skip the others."""
    for item in data:
        if isinstance(item, Mapping) and "parameter" in item:
            parameters = item["parameter"]
            if not explored.space.validate(parameters):
                yield parameters, item.get("value")
