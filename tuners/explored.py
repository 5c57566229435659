"""Which points of a space were suggested or measured before, as far as a point can come twice.

A point with an active continuous parameter never does by chance, so only the others are remembered, unless
everything is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from ..search_space import Parameter, SearchSpace
from ..search_space.json_values import identity
from .base import NoMoreTrialError
from .grid import GridWalk

_RESAMPLES = 50  # draws before the grid is asked for a point that is left
_GRID_STEPS = 200_000  # grid points looked at for one suggestion before the search counts as over


def _continuous(parameter: Parameter) -> bool:
    return parameter.size is None and parameter.q is None


class Explored:
    """The memory that keeps a tuner from suggesting the same configuration twice.

    >>> space = SearchSpace.parse({"x": {"_type": "choice", "_value": ["a", "b"]}})
    >>> explored = Explored(space)
    >>> [explored.new_point(lambda: {"x": "a"})["x"] for _ in range(2)]
    ['a', 'b']
    """

    def __init__(
        self, space: SearchSpace, earlier: Explored | None = None, *, everything: bool = False
    ) -> None:
        self.space = space
        self._everything = everything
        self._points: set[Hashable] = set() if earlier is None else earlier._points
        self._walk = GridWalk(space)
        self._always = any(_continuous(p) and p.parent is None for p in space.parameters)
        self._sometimes = [p.key for p in space.parameters if _continuous(p)]

    def repeatable(self, parameters: dict[str, Any]) -> bool:
        """Whether this point can come twice: whether no continuous parameter is active in it."""
        return not self._always and not any(_present(key, parameters) for key in self._sometimes)

    def add(self, parameters: dict[str, Any]) -> bool:
        """Remember a point; return False if it was known already."""
        if not (self._everything or self.repeatable(parameters)):
            return True
        key, before = identity(parameters), len(self._points)
        self._points.add(key)
        return len(self._points) > before

    def new_point(self, draw: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the first new point among those drawn, else the next of the grid that is left.

        Raises NoMoreTrialError when every point was suggested or measured.
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


def _present(key: tuple[str | int, ...], parameters: Any) -> bool:
    """Whether a parameter is active; the option index before each inner name is not in the parameters."""
    *outer, name = [part for part in key if isinstance(part, str)]
    for part in outer:
        parameters = parameters.get(part) if isinstance(parameters, dict) else None
    return isinstance(parameters, dict) and name in parameters


def ready(explored: Explored | None) -> Explored:
    """Return what there is after ``update_search_space``; before it, raise RuntimeError."""
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
