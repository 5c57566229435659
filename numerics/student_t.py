"""The noise of results: the mean of repeats, how sure it is, and whether one configuration is clearly worse.

Student, The probable error of a mean, Biometrika 6(1), 1908
Maron and Moore, Hoeffding races, NIPS 1994; Birattari et al., A racing algorithm for configuring
metaheuristics (F-Race), GECCO 2002: the idea to give up what is clearly worse than the best
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

# Probabilities that are used, and the quantiles of the normal distribution.
_NORMAL = {0.95: 1.6448536269514722, 0.975: 1.959963984540054}


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value; of opposite infinities it is NaN.

    >>> mean([0.5, 1.0, 1.5])
    1.0
    """
    if min(values) == max(values):
        return values[0]  # without a rounding error
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):  # a sum beyond the largest float, opposite infinities
        return statistics.mean(values)


def interval(values: Sequence[float]) -> float | None:
    """Return half the width of the 95 % confidence interval of the mean (Student's t).

    None if it is unknown, or beyond the largest float.

    >>> interval([1.0]), round(interval([1.0, 2.0, 3.0]), 3)
    (None, 2.484)
    """
    count = len(values)
    if count < 2 or not all(map(math.isfinite, values)):
        return None
    half_width = _quantile(0.975, count - 1) * (_distance(values) / math.sqrt(count * (count - 1)))
    return half_width if math.isfinite(half_width) else None


def is_clearly_worse(losses: Sequence[float], best: Sequence[float]) -> bool:
    """Return whether the mean of some losses is above that of others, by a one-sided t test at 5 %.

    It is, if even its optimistic bound is: the mean less t times the standard error of the difference. The noise is
    taken to be the same for both. A loss that is not finite makes the mean the worst.

    >>> is_clearly_worse([1.0, 1.2], [0.1, 0.2, 0.3]), is_clearly_worse([0.2, 0.4], [0.1, 0.2, 0.3])
    (True, False)
    """
    freedom = len(losses) + len(best) - 2
    losses, best = ([loss / 4 for loss in each] for each in (losses, best))  # their differences stay finite
    gap = mean(losses) - mean(best)
    if not math.isfinite(gap):
        return gap > 0
    if freedom < 1:
        return False
    deviation = math.hypot(_distance(losses), _distance(best)) * math.sqrt(1 / len(losses) + 1 / len(best))
    return gap > _quantile(0.95, freedom) / math.sqrt(freedom) * deviation


def _distance(values: Sequence[float]) -> float:
    """Return the square root of the sum of the squared differences from the mean."""
    return math.dist(values, [mean(values)] * len(values))


def _quantile(share: float, freedom: int) -> float:
    """Return a quantile of Student's t distribution.

    Exact for 1 and 2 degrees of freedom; for more by the expansion of Abramowitz and Stegun, 26.7.5, whose error is
    below 0.2 %.
    """
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = _NORMAL[share]
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))
