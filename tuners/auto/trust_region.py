"""How far from the best point to search: further after successes, nearer after failures.

Eriksson et al., Scalable Global Optimization via Local Bayesian Optimization, NeurIPS 2019 (TuRBO).
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TrustRegion"]

_START, _LEAST, _MOST = 0.4, 2.0**-8, 0.8  # half the side of the box, of the unit interval
_PATIENCE = 3  # successes in a row before the radius grows


@dataclass(slots=True)
class TrustRegion:
    """The radius of the box around the best point.

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
