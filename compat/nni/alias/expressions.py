"""NNI's `parameter_expressions`: one random value of each type of parameter.

`random_state` is a numpy RandomState (or anything with its methods).

>>> import numpy as np
>>> state = np.random.RandomState(0)
>>> choice(["a", "b"], state), randint(0, 10, state)
('a', 5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from ....search_space import finite_exp

Option = TypeVar("Option")


def choice(options: Sequence[Option], random_state: Any) -> Option:
    """Return one of the options."""
    return options[random_state.randint(len(options))]


def randint(lower: int, upper: int, random_state: Any) -> int:
    """Return an integer from `lower` to `upper` - 1."""
    return int(random_state.randint(lower, upper))


def uniform(low: float, high: float, random_state: Any) -> float:
    """Return a number from `low` to `high`."""
    if high <= low:
        raise ValueError(f"the upper bound {high} is not above the lower bound {low}")
    return float(random_state.uniform(low, high))


def quniform(low: float, high: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q`, moved between `low` and `high`."""
    return _between(low, high, _rounded(uniform(low, high, random_state), q))


def loguniform(low: float, high: float, random_state: Any) -> float:
    """Return a number from `low` to `high` whose logarithm is uniform."""
    if low <= 0:
        raise ValueError(f"the lower bound {low} of loguniform is not above 0")
    return math.exp(uniform(math.log(low), math.log(high), random_state))


def qloguniform(low: float, high: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a loguniform number, moved between `low` and `high`."""
    return _between(low, high, _rounded(loguniform(low, high, random_state), q))


def normal(mu: float, sigma: float, random_state: Any) -> float:
    """Return a normal number."""
    return float(random_state.normal(mu, sigma))


def qnormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a normal number."""
    return _rounded(normal(mu, sigma, random_state), q)


def lognormal(mu: float, sigma: float, random_state: Any) -> float:
    """Return a number whose logarithm is normal."""
    return finite_exp(normal(mu, sigma, random_state))


def qlognormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """Return a multiple of `q` near a number whose logarithm is normal."""
    return _rounded(lognormal(mu, sigma, random_state), q)


def _rounded(value: float, q: float) -> float:
    return round(value / q) * q


def _between(low: float, high: float, value: float) -> float:
    return min(max(value, low), high)
