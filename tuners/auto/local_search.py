"""Two ways to search near the best point: by the largest expected improvement, and down to the lowest expected loss.

Expected improvement prefers unknown points to the bottom of a valley; the lowest expected loss leaves unknown points
alone. The way that has just found the best result continues; after a step without success the other has its turn.

    Robbins, Some aspects of the sequential design of experiments, 1952 (win-stay, lose-shift)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...numerics import Floats, Ints
from ..base import Layout

_START, _LEAST, _MOST = 0.4, 2.0**-8, 0.8  # half the side of the box, of the unit interval
_PATIENCE = 3  # successes in a row before the radius grows
_FINEST = 2.0**-20  # the least radius of a descent among real numbers
_FAR = 0.5  # of the radius: a longer step that succeeds lets the radius grow
_SHORT_PATIENCE = 2  # failures in a row before a descent shrinks its box


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Step:
    """A suggestion in a box around `centre`, shape (d,); `best` is the lowest loss until then."""

    centre: Floats
    is_descent: bool
    best: float


class LocalSearch:
    """Chooses the way and the radius of the next step near the best point, by the success of the steps so far.

    The length of a step is measured in its numbers.

    >>> from pitchpipe.search_space import SearchSpace
    >>> space = SearchSpace.parse({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> search = LocalSearch(Layout.of(space))
    >>> search.may_descend(np.arange(0)), search.radius(is_descent=True)
    (True, 0.4)
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._trust = TrustRegion(layout.dimension)
        self._descent: DescentRegion | None = None
        self._steps: dict[int, Step] = {}
        self._descends = True
        self._has_won = False

    def may_descend(self, running: Ints) -> bool:
        """Return whether it is the turn of a descent, and no `running` row is one: both would be one point."""
        steps = [self._steps.get(row) for row in running.tolist()]
        return self._descends and not any(step and step.is_descent for step in steps)

    def must_descend(self, running: Ints) -> bool:
        """Return whether the last step was a descent that found the best result: another one follows."""
        return self._has_won and self.may_descend(running)

    def radius(self, *, is_descent: bool) -> float:
        """Return half the side of the box; the first descent begins with the other's."""
        if not is_descent:
            return self._trust.radius
        if self._descent is None:
            # A smaller box around an integer contains no other integer.
            least = 0.5 * min(self._layout.cells, default=0.0)
            self._descent = DescentRegion(max(self._trust.radius, least), least)
        return self._descent.radius

    def suggested(self, row: int, step: Step) -> None:
        """Remember a step until its result is known."""
        self._steps[row] = step

    def pop(self, row: int) -> Step | None:
        """Return the step that suggested this row, if any, and forget it."""
        return self._steps.pop(row, None)

    def finished(self, step: Step, units: Floats, *, is_best: bool) -> None:
        """Learn whether a step to a point, shape (d,), found the best result so far."""
        if step.is_descent and self._descent is not None:
            length = float(np.nanmax(np.abs(units - step.centre)[self._layout.numeric], initial=0.0))
            self._descent.update(improved=is_best, length=length)
        else:
            self._trust.update(improved=is_best)
        self._descends = step.is_descent == is_best
        self._has_won = step.is_descent and is_best


@dataclass(slots=True)
class TrustRegion:
    """The radius of the box around the best point in which the largest improvement is sought.

    Eriksson et al., Scalable Global Optimization via Local Bayesian Optimization, NeurIPS 2019 (TuRBO).

    >>> region = TrustRegion(dimension=2)
    >>> for _ in range(4): region.update(improved=False)
    >>> region.radius
    0.2
    """

    dimension: int
    radius: float = _START
    successes: int = 0
    failures: int = 0

    def update(self, *, improved: bool) -> None:
        """Take into account whether a point of the region was the best so far; below the least size, start over."""
        self.successes, self.failures = (self.successes + 1, 0) if improved else (0, self.failures + 1)
        if self.successes == _PATIENCE:
            self.radius, self.successes = min(2 * self.radius, _MOST), 0
        elif self.failures >= max(4, self.dimension):
            self.radius, self.failures = self.radius / 2, 0
        if self.radius < _LEAST:
            self.radius = _START


@dataclass(slots=True)
class DescentRegion:
    """The radius of the box around the best point in which the expected loss is minimised.

    Powell, The NEWUOA software for unconstrained optimization without derivatives, 2006: the box shrinks as soon as
    the model fails, and grows when a step to its edge succeeds.

    >>> region = DescentRegion()
    >>> region.update(improved=True, length=0.4)
    >>> region.radius
    0.8
    """

    radius: float = _START
    least: float = 0.0  # among integers, half the step between two of them
    failures: int = 0

    def update(self, *, improved: bool, length: float) -> None:
        """Take a step of this length into account, in units of the range; below the least size, start over."""
        self.failures = 0 if improved else self.failures + 1
        if improved and length > _FAR * self.radius:
            self.radius = min(2 * self.radius, _MOST)
        elif self.failures == _SHORT_PATIENCE:
            self.radius, self.failures = self.radius / 2, 0
        if self.radius < max(self.least, _FINEST):
            self.radius = _START
