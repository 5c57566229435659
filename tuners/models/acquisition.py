"""What a candidate is worth: how much a result there is expected to improve on the best ones.

For one objective it is the logarithm of the expected improvement, exact far into its tail:

    Ament et al., Unexpected Improvements to Expected Improvement for Bayesian Optimization, NeurIPS 2023

For several, all of them minimised, it is the expected growth of the volume that the front dominates. The region that a
front leaves is cut into boxes; for independent normal objectives, the growth is a sum over the boxes of products of
one-dimensional expected improvements:

    Emmerich, Deutz and Klinkenberg, Hypervolume-based Expected Improvement, CEC 2011
    Yang et al., Efficient Computation of Expected Hypervolume Improvement, Journal of Global Optimization 75, 2019
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ...numerics import Floats

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_MOST_OF_FRONT = {1: 1, 2: 200, 3: 32}  # points by objectives: the boxes grow with their power
_MOST_BEYOND = 12
_LEAST = 1e-250  # a growth that is certainly not rounded to it
_ENOUGH = 20  # candidates with a larger growth: the others do not matter


def log_expected_improvement(mean: Floats, deviation: Floats, best: float) -> Floats:
    """Return log E[max(best - f, 0)] for f normal with these means and standard deviations, shape (m,).

    >>> bool(log_expected_improvement(np.zeros(1), np.ones(1), -40.0)[0] > -1000)
    True
    """
    return _log_h((best - mean) / deviation) + np.log(deviation)


def _log_h(z: Floats) -> Floats:
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


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Disjoint boxes that fill what is below the reference point and not dominated; shape (b, m) each.

    >>> boxes = Boxes.left_by(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    >>> sorted(boxes.upper.tolist())
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """

    lower: Floats
    upper: Floats

    @classmethod
    def left_by(cls, front: Floats, reference: Floats) -> Boxes:
        """Cut the region that a front, shape (k, m), leaves below the reference point, shape (m,)."""
        inside = front[(front < reference).all(axis=1)]
        return cls(*_cut(np.unique(inside, axis=0), reference))

    def above(self, floor: Floats) -> Boxes:
        """Return what lies above a point that no box is below, shape (m,)."""
        return Boxes(np.maximum(self.lower, floor), self.upper)


def _cut(front: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Slice along the last objective; in each slice, the points below it leave a region with one objective less."""
    if len(reference) == 1:
        return np.array([[-np.inf]]), np.array([[front[:, 0].min(initial=reference[0])]])
    if len(reference) == 2:
        return _cut_plane(front, reference)
    lower, upper = list[Floats](), list[Floats]()
    for low, high in itertools.pairwise([-np.inf, *np.unique(front[:, -1]), reference[-1]]):
        inner = _cut(front[front[:, -1] <= low][:, :-1], reference[:-1])
        for parts, bounds, bound in ((lower, inner[0], low), (upper, inner[1], high)):
            parts.append(np.column_stack([bounds, np.full(len(bounds), bound)]))
    return np.concatenate(lower), np.concatenate(upper)


def _cut_plane(front: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Return a box for each step of the staircase that the front makes, and one before it."""
    x, y = front[np.lexsort((front[:, 1], front[:, 0]))].T
    is_step = y < np.minimum.accumulate(np.append(np.inf, y))[:-1]
    x, y = x[is_step], y[is_step]
    lower = np.column_stack([np.append(-np.inf, x), np.full(len(x) + 1, -np.inf)])
    return lower, np.column_stack([np.append(x, reference[0]), np.append(reference[1], y)])


def log_expected_hypervolume_improvement(means: Floats, deviations: Floats, boxes: Boxes) -> Floats:
    """Return the logarithm of the expected growth of the dominated volume, shape (c,).

    `means` and `deviations` of the candidates have shape (c, m). In a box, the growth is the product over the
    objectives of `max(upper - y, 0) - max(lower - y, 0)`. Where it is too small for a float, it is computed by
    logarithms, which takes longer, unless enough other candidates are better.
    """
    growth = np.ones((len(means), len(boxes.upper)))
    for column, (mean, deviation) in enumerate(zip(means.T, deviations.T, strict=True)):
        levels, places = np.unique([boxes.lower[:, column], boxes.upper[:, column]], return_inverse=True)
        below, above = places.reshape(2, -1)
        gains = _gains(mean, deviation, levels)
        growth *= gains[:, above] - gains[:, below]
    total = growth.sum(axis=1)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(total, 0.0))
    tiny = ~(total > _LEAST)
    if (~tiny).sum() < _ENOUGH:
        logs[tiny] = _log_growth(means[tiny], deviations[tiny], boxes)
    return logs


def _gains(mean: Floats, deviation: Floats, levels: Floats) -> Floats:
    """Return the expected improvement on each level, shape (c, levels)."""
    from scipy.special import ndtr

    z = (levels - mean[:, None]) / deviation[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        gains = deviation[:, None] * (np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) + z * ndtr(z))
    gains[:, np.isneginf(levels)] = 0.0
    return gains


def _log_growth(means: Floats, deviations: Floats, boxes: Boxes) -> Floats:
    """Return the same from the logarithms of the factors."""
    logs = np.zeros((len(means), len(boxes.upper)))
    for column, (mean, deviation) in enumerate(zip(means.T, deviations.T, strict=True)):
        for box, (low, high) in enumerate(zip(boxes.lower[:, column], boxes.upper[:, column], strict=True)):
            above = log_expected_improvement(mean, deviation, high)
            if np.isfinite(low):
                below = log_expected_improvement(mean, deviation, low)
                with np.errstate(divide="ignore"):
                    above = above + np.log1p(-np.minimum(np.exp(below - above), 1.0))
            logs[:, box] += above
    highest = logs.max(axis=1)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(logs - safe[:, None]).sum(axis=1))


def thinned_front(rng: np.random.Generator, front: Floats) -> Floats:
    """Return a front, shape (k, m), or the extremes and random others of it where the boxes would be too many."""
    count, objectives = front.shape
    most = _MOST_OF_FRONT.get(objectives, _MOST_BEYOND)
    if count <= most:
        return front
    ends = np.unique([*front.argmin(axis=0), *front.argmax(axis=0)])[:most]
    others = rng.permutation(np.setdiff1d(np.arange(count), ends))[: most - len(ends)]
    return front[np.concatenate([ends, others])]
