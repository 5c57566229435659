"""The acquisition function: the logarithm of the expected improvement, exact far into its tail.

Ament et al., Unexpected Improvements to Expected Improvement for Bayesian Optimization, NeurIPS 2023.
"""

from __future__ import annotations

import math

import numpy as np

from ..base import Floats

__all__ = ["log_expected_improvement", "log_h"]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return log E[max(best - f, 0)] for f normal with these means and standard deviations, shape (m,).

    >>> bool(log_expected_improvement(np.zeros(1), np.ones(1), -40.0)[0] > -1000)
    True
    """
    return log_h((best - mean) / deviation) + np.log(deviation)


def log_h(z: Floats) -> Floats:
    """Return log(phi(z) + z Phi(z)) (Ament et al. 2023, eq. 9 and appendix A.1)."""
    from scipy.special import erfcx, ndtr

    result = np.empty_like(z)
    near = z > -1
    a = z[near]
    result[near] = np.log(np.exp(-0.5 * a * a - _LOG_SQRT_2PI) + a * ndtr(a))
    b = z[~near]
    # phi(z) (1 - |z| Phi(z) / phi(z)); the ratio tends to 1 - 1/z^2.
    ratio = erfcx(-b / math.sqrt(2)) * np.abs(b) * math.sqrt(math.pi / 2)
    tail = np.where(b > -1e3, np.log1p(-np.minimum(ratio, 1 - 1e-15)), -2 * np.log(np.abs(b)))
    result[~near] = -0.5 * b * b - _LOG_SQRT_2PI + tail
    return result
