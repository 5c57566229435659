"""A lazy walk over the grid of a search space: coarse first, every point once, storing only its position.

Epoch 1 takes every option of a choice, every integer of a randint and the median of everything else. Each
further epoch halves the gaps, measured by the CDF of the sampling distribution: quartiles, eighths, ...
Within an epoch the last parameter varies fastest, and only points with a new coordinate are visited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...search_space import Parameter, SearchSpace, UnitMap, unit_map

_DEEPEST = 50  # epochs: beyond it, a double cannot halve the gaps of the unit interval


class _Axis(Protocol):
    """The grid of one parameter: coordinates by index, those of earlier epochs first."""

    @property
    def old(self) -> int:
        """The number of coordinates from earlier epochs."""
        ...

    @property
    def count(self) -> int: ...

    def unit(self, index: int) -> float: ...

    def refine(self) -> bool:
        """Start the next epoch; return whether a later one may add coordinates."""
        ...


@dataclass(slots=True)
class _Options:
    """Choice and randint: all coordinates exist from the start."""

    count: int
    old: int = 0

    def unit(self, index: int) -> float:
        return (index + 0.5) / self.count

    def refine(self) -> bool:
        self.old = self.count
        return False


@dataclass(slots=True)
class _Continuum:
    """1/2, then 1/4 and 3/4, then the odd eighths: computed, not stored."""

    count: int = 1
    old: int = 0

    def unit(self, index: int) -> float:
        halves = (index + 1).bit_length()
        return (2 * (index + 1 - (1 << (halves - 1))) + 1) / (1 << halves)

    def refine(self) -> bool:
        self.old, self.count = self.count, 2 * self.count + 1
        return self.count < 1 << _DEEPEST


@dataclass(slots=True, kw_only=True)
class _Steps:
    """A type with a step q: like a continuum without repeated values, so it ends."""

    units: list[float]
    parameter: Parameter
    gaps: list[tuple[float, float]]  # that may contain more values
    epoch: int = 1
    old: int = 0

    @property
    def count(self) -> int:
        return len(self.units)

    def unit(self, index: int) -> float:
        return self.units[index]

    def refine(self) -> bool:
        self.old, self.epoch = len(self.units), self.epoch + 1
        values = unit_map(self.parameter)
        gaps = []
        for low, high in self.gaps:
            middle = (low + high) / 2
            value = values.from_unit(middle)
            # The ends of the unit interval are not visited, so their values are not known.
            known = [values.from_unit(unit) for unit in (low, high) if 0 < unit < 1]
            if value not in known:
                self.units.append(values.to_unit(value))
            gaps += [gap for gap in ((low, middle), (middle, high)) if self.hides(values, *gap)]
        self.gaps = gaps if self.epoch < _DEEPEST else []
        return bool(self.gaps)

    def hides(self, values: UnitMap, low: float, high: float) -> bool:
        """Return whether an unvisited value may lie between two units."""
        distance = values.from_unit(high) - values.from_unit(low)
        step = 1.0 if self.parameter.integer else float(self.parameter.q or 0)
        return distance > (0 if low == 0 or high == 1 else 1.001 * step)


def _axis(parameter: Parameter) -> _Axis:
    if parameter.categorical:
        return _Options(len(parameter.options))
    if parameter.even:
        return _Options(int(parameter.size or 1))
    if parameter.size == 1:
        return _Options(1)
    if parameter.q is None and not parameter.integer:
        return _Continuum()
    values = unit_map(parameter)
    axis = _Steps(units=[values.to_unit(values.from_unit(0.5))], parameter=parameter, gaps=[])
    axis.gaps = [gap for gap in ((0.0, 0.5), (0.5, 1.0)) if axis.hides(values, *gap)]
    return axis


class GridWalk:
    """Yields the grid points of a space by `next`, as vectors of the unit cube with NaN where inactive.

    >>> walk = GridWalk(SearchSpace.parse({"x": {"_type": "uniform", "_value": [0, 1]}}))
    >>> [float(walk.next()[0]) for _ in range(7)]
    [0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875]
    """

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._axes = [_axis(parameter) for parameter in space.parameters]
        self._branches = frozenset(p.parent[0] for p in space.parameters if p.parent)
        self._point: list[int | None] | None = None
        self._epoch = 1
        self._ended = False

    def next(self) -> NDArray[np.float64] | None:
        """Return the next point, shape (d,), or None at the end."""
        while not self._ended:
            self._point = self._following()
            if self._point is not None:
                pairs = zip(self._axes, self._point, strict=True)
                return np.array([np.nan if i is None else axis.unit(i) for axis, i in pairs], dtype=float)
            self._refine()
        return None

    def _refine(self) -> None:
        """Start the next epoch with a new coordinate, or end the walk."""
        hopeful = True
        while hopeful:
            # A list, so that every axis is refined before any() stops.
            unfinished = [axis.refine() for axis in self._axes]
            hopeful = any(unfinished)
            self._epoch += 1
            if any(axis.count > axis.old for axis in self._axes):
                return
        self._ended = True

    def _following(self) -> list[int | None] | None:
        """Return the next point in this epoch."""
        if self._point is None:
            return self._completed([])
        for i in reversed(range(len(self._point))):
            here = self._point[i]
            if here is None:
                continue
            prefix = self._point[:i]
            index = self._smallest(prefix, here + 1)
            if index is not None:
                return self._completed([*prefix, index])
        return None

    def _completed(self, prefix: list[int | None]) -> list[int | None] | None:
        """Return the first point that starts with a prefix, or None if it would be an old one."""
        if not self._promising(prefix):
            return None
        point = list(prefix)
        for i in range(len(prefix), len(self._axes)):
            point.append(self._smallest(point, 0) if self._reachable(i, point) else None)
        return point

    def _smallest(self, prefix: list[int | None], least: int) -> int | None:
        """Return the smallest index at or above `least` for the next parameter that leads to a new point."""
        i = len(prefix)
        axis = self._axes[i]
        if i in self._branches:
            indices: Sequence[int] = range(least, axis.count)
        else:
            indices = [index for index in (least, max(least, axis.old)) if index < axis.count]
        return next((index for index in indices if self._promising([*prefix, index])), None)

    def _promising(self, prefix: list[int | None]) -> bool:
        """Return whether a prefix has a new coordinate, or a later parameter can have one."""
        if self._epoch == 1:
            return True
        if any(i is not None and i >= axis.old for i, axis in zip(prefix, self._axes, strict=False)):
            return True
        return any(
            axis.count > axis.old and self._reachable(i, prefix)
            for i, axis in enumerate(self._axes[len(prefix) :], len(prefix))
        )

    def _reachable(self, i: int, prefix: list[int | None]) -> bool:
        """Return whether parameter `i` is or can become active after a prefix."""
        parent = self.space.parameters[i].parent
        while parent is not None:
            choice, option = parent
            if choice < len(prefix):
                return prefix[choice] == option
            parent = self.space.parameters[choice].parent
        return True
