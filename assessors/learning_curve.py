"""Extrapolation of a learning curve by many curve families at once, at a bounded cost.

Domhan, Springenberg and Hutter, Speeding Up Automatic Hyperparameter Optimization of Deep Neural Networks by
Extrapolation of Learning Curves, IJCAI 2015. Their families are kept, their Monte Carlo chain is not: every
family here is y = a + b phi(x) with a shape phi from a grid, so that a and b have closed forms and the average over
shapes is a sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_POINTS = 64  # of a curve are fitted; a longer one is thinned out evenly
_FLOOR = 3e-4  # noise that is assumed, as a share of the range of the curve
_LARGEST = 1e150  # larger values are left out: squares must stay finite


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected final value of a curve: mean and standard deviation over families and shapes."""

    mean: float
    deviation: float


def _shapes(x: Floats, horizon: float) -> list[Floats]:
    """Return the shapes of each family at x, shape (k, n) each; all fall, to 0 but for the logarithm.

    The names are those of Domhan et al., table 1. Where a family has one shape parameter its grid is fine.
    """
    powers, times = np.geomspace(0.1, 4.0, 48)[:, None], horizon * np.geomspace(0.02, 1.5, 64)[:, None]
    ratios = x / times[::2]
    return [
        x**-powers,  # pow3
        (x + 0.1 * horizon) ** -powers[::2],  # pow4
        np.exp(-x / times),  # exp3
        np.concatenate([np.exp(-(ratios**delta)) for delta in (0.5, 0.65, 0.8, 1.25, 1.6)]),  # weibull
        np.concatenate([1.0 / (1.0 + ratios**eta) for eta in (1.0, 1.5, 2.0, 3.0)]),  # hill3
        1.0 / np.log(x + 1.0)[None],  # ilog2
        -np.log(x)[None],  # log power: has no limit
    ]


def extrapolate(values: Floats, horizon: int) -> Prediction | None:
    """Predict the value at `horizon` from `values` at 1, 2, ..., shape (n,), which rise; None with too few numbers.

    Each shape is fitted by least squares; one that would fall is replaced by a constant. Shapes are weighted by their
    likelihood under normal noise of unknown size, with equal priors for all families (Domhan et al., section 3.3).

    >>> x = np.arange(1.0, 9.0)
    >>> round(extrapolate(0.9 - 0.5 * x**-1.0, 100).mean, 2)
    0.9
    """
    steps = np.arange(1.0, len(values) + 1)
    usable = np.isfinite(values) & (np.abs(values) < _LARGEST)
    x, y = steps[usable], values[usable]
    if len(x) < 3:
        return None
    if len(x) > _MOST_POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _MOST_POINTS).astype(np.int64))
        x, y = x[kept], y[kept]
    scale = float(np.ptp(y))
    if scale == 0.0:
        return Prediction(float(y[-1]), 0.0)
    families = _shapes(np.append(x, float(horizon)), float(horizon))
    log_prior = np.concatenate([np.full(len(family), -math.log(len(family))) for family in families])
    mean, variance, log_likelihood = _fitted(np.concatenate(families), (y - y[-1]) / scale)
    weights = np.exp(log_prior + log_likelihood - (log_prior + log_likelihood).max())
    weights /= weights.sum()
    average = float(weights @ mean)
    spread = float(weights @ (variance + (mean - average) ** 2))
    return Prediction(average * scale + float(y[-1]), math.sqrt(spread) * scale)


def _fitted(shapes: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit every shape, (m, n + 1), to y, (n,): mean and variance at the last column, and the log likelihood."""
    n = len(y)
    seen, target = shapes[:, :-1], shapes[:, -1]
    centre = seen.mean(axis=1, keepdims=True)
    centred = seen - centre
    square = np.maximum((centred**2).sum(axis=1), 1e-300)
    slope = np.minimum(centred @ (y - y.mean()) / square, 0.0)  # shapes fall and curves rise
    residual = np.maximum(((y - y.mean()) ** 2).sum() - slope**2 * square, 0.0)
    far = target - centre[:, 0]
    noise = residual / max(n - 2, 1) + _FLOOR**2
    mean = y.mean() + slope * far
    variance = noise * (1.0 / n + far**2 / square * (slope < 0))
    return mean, variance, -0.5 * n * np.log(residual / n + _FLOOR**2)
