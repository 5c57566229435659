"""Which points of a space were suggested or measured before, and the base class of tuners that learn nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ...protocol import Parameters
from ...search_space import Parameter, SearchSpace, identity
from ..tuner import NoMoreTrialError, Tuner
from .grid import GridWalk

_RESAMPLES = 50  # draws before a point is taken from the grid
_DIGITS = 12  # of a float that distinguish points, unless its range is narrow
_DIGITS_WITHIN = 9  # of a range that distinguish points, as far as floats do
_ALL_DIGITS = 17
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

    @cached_property
    def _digits(self) -> int:
        """How many digits of a float distinguish points: more where a range is narrow and far from 0."""
        return min(max([_DIGITS, *map(_digits_of, self.space.parameters)]), _ALL_DIGITS)

    def key(self, parameters: Parameters) -> Hashable:
        """Return a key that equal points share; floats count as equal up to rounding errors.

        A normal value that goes to the unit interval and back may differ from itself in the last digits.
        """
        return identity(parameters, self._digits)

    def add(self, parameters: Parameters) -> bool:
        """Remember a point; return whether it is new."""
        key, before = self.key(parameters), len(self._points)
        self._points.add(key)
        return len(self._points) > before

    def forget(self, parameters: Parameters) -> None:
        """Forget a point, so that it can be suggested again."""
        self._points.discard(self.key(parameters))

    def new_point(self, draw: Callable[[], Parameters]) -> Parameters:
        """Return the first new point among those drawn, else the next new point of the grid.

        Raises `NoMoreTrialError` when every point was suggested or measured.
        """
        for _ in range(_RESAMPLES):
            point = draw()
            if self.add(point):
                return point
        return self.next_left()

    def next_left(self) -> Parameters:
        """Return the next point of the grid that is new and satisfies the constraints."""
        for _ in range(_GRID_STEPS):
            vector = self._walk.next()
            if vector is None:
                raise NoMoreTrialError()
            point = self.space.decode(vector)
            if not self.space.violations(point) and self.add(point):
                return point
        raise NoMoreTrialError(f"none of {_GRID_STEPS} further points is new and satisfies the constraints")


def _digits_of(parameter: Parameter) -> int:
    """Return how many digits distinguish the values of a parameter; 0 if it has no floats."""
    if parameter.categorical or parameter.integer:
        return 0
    if parameter.normal:
        mu, width = float(parameter.mu or 0), float(parameter.sigma or 1)
        furthest = abs(mu) + width
        if parameter.log:
            furthest, width = math.exp(mu), math.exp(mu) * width
    else:
        low, high = float(parameter.low or 0), float(parameter.high or 0)
        furthest, width = max(abs(low), abs(high)), high - low
    step = width / 10**_DIGITS_WITHIN if parameter.q is None else parameter.q / 10
    return math.ceil(math.log10(furthest / step)) if 0 < step < furthest else 0


def ready(explored: Explored | None) -> Explored:
    """Return `explored`; raise RuntimeError if there is no search space yet."""
    if explored is None:
        raise RuntimeError("a tuner needs update_search_space before anything else")
    return explored


def measurements(explored: Explored, data: Iterable[Any]) -> Iterator[tuple[Parameters, Any]]:
    """Yield parameters and value of the imported items that are points of the space; skip the others."""
    for item in data:
        if isinstance(item, Mapping) and "parameter" in item:
            parameters = item["parameter"]
            if not explored.space.validate(parameters):
                yield parameters, item.get("value")


class NonRepeatingTuner(Tuner):
    """Remembers every point that was suggested or measured; a subclass suggests others."""

    _explored: Explored | None = None

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; points of an earlier one are not suggested again."""
        self._explored = Explored(SearchSpace.parse(search_space, self.constraints), self._explored)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        """Remember the point, which may not be a suggestion of this tuner."""
        self.import_data([{"parameter": parameters, "value": value}])

    def update_running(self, points: Sequence[Parameters]) -> None:
        """Remember starting points that run already."""
        for point in points:
            ready(self._explored).add(point)

    def import_data(self, data: list[Any]) -> None:
        """Remember points that were measured before, whatever their value."""
        explored = ready(self._explored)
        for parameters, _ in measurements(explored, data):
            explored.add(parameters)
