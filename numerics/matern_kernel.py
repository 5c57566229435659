"""The Matern kernels of the usual smoothnesses, and their slopes.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1.
"""

from __future__ import annotations

import math

import numpy as np

from .arrays import Floats

SMOOTHNESSES = (0.5, 1.5, 2.5, math.inf)
_NEAREST = 1e-5


def matern(squared: Floats, nu: float = 2.5) -> Floats:
    """Return the correlation at squared distances, for a smoothness of `SMOOTHNESSES` (R&W eqs. 4.17 and 4.9).

    >>> matern(np.array([0.0, 1.0])).round(3).tolist()
    [1.0, 0.524]
    """
    return correlation_and_slope(squared, nu)[0]


def correlation_and_slope(squared: Floats, nu: float = 2.5) -> tuple[Floats, Floats]:
    """Return the correlation k at squared distances, and -2 dk / d squared."""
    if nu == math.inf:
        correlation = np.exp(-0.5 * squared)
        return correlation, correlation
    # In place: new arrays of this size cost more than the arithmetic.
    distance = np.sqrt(squared)
    distance *= math.sqrt(2 * nu)
    decay = np.negative(distance)
    np.exp(decay, out=decay)
    if nu == 0.5:
        # The slope is infinite at a distance of 0, where it does not count.
        return decay, np.where(distance > _NEAREST, decay / np.maximum(distance, _NEAREST), 0.0)
    linear = np.add(distance, 1, out=distance)
    if nu == 1.5:
        linear *= decay
        return linear, 3 * decay
    slope = (5 / 3) * linear
    slope *= decay
    linear += (5 / 3) * squared
    linear *= decay
    return linear, slope
