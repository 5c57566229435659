"""How far from the best point to search: further after successes, nearer after failures."""

from __future__ import annotations

from dataclasses import dataclass

_START, _LEAST, _MOST = 0.4, 2.0**-8, 0.8  # half the side of the box, of the unit interval
_PATIENCE = 3  # successes in a row before the radius grows
_FINEST = 2.0**-20  # the least radius of a descent among real numbers
_FAR = 0.5  # of the radius: a longer step that succeeds lets the radius grow
_SHORT_PATIENCE = 2  # failures in a row before a descent shrinks its box


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
