"""Several objectives: the volume that a front leaves undominated, and by how much it is expected to shrink.

All objectives are minimised. The region that a front leaves is cut into boxes; for independent normal objectives, the
expected improvement of the hypervolume is a sum over the boxes of products of one-dimensional expected improvements.

    Emmerich, Deutz and Klinkenberg, Hypervolume-based Expected Improvement, CEC 2011
    Yang et al., Efficient Computation of Expected Hypervolume Improvement, Journal of Global Optimization 75, 2019
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ..base import Floats, front_of
from .acquisition import log_expected_improvement

__all__ = ["Boxes", "log_expected_hypervolume_improvement", "thinned_front"]

_MOST_OF_FRONT = {1: 1, 2: 200, 3: 32}  # points by objectives: the boxes grow with their power
_MOST_BEYOND = 12


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


def _cut(front: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Slice along the last objective; in each slice, the points below it leave a region with one objective less."""
    last = reference[-1]
    if len(reference) == 1:
        return np.array([[-np.inf]]), np.array([[front[:, 0].min(initial=last)]])
    levels = [-np.inf, *np.unique(front[:, -1]), last]
    lower, upper = list[Floats](), list[Floats]()
    for low, high in itertools.pairwise(levels):
        below = front[front[:, -1] <= low][:, :-1]
        inner = _cut(below[front_of(below)] if len(below) else below, reference[:-1])
        for found, inner_bounds, bound in ((lower, inner[0], low), (upper, inner[1], high)):
            found.append(np.column_stack([inner_bounds, np.full(len(inner_bounds), bound)]))
    return np.concatenate(lower), np.concatenate(upper)


def log_expected_hypervolume_improvement(means: Floats, deviations: Floats, boxes: Boxes) -> Floats:
    """Return the logarithm of the expected growth of the dominated volume, shape (c,).

    `means` and `deviations` of the candidates have shape (c, m). In a box, the growth is the product over the
    objectives of `max(upper - y, 0) - max(lower - y, 0)`.
    """
    logs = np.zeros((len(means), len(boxes.upper)))
    for objective in range(means.shape[1]):
        uppers, of_upper = np.unique(boxes.upper[:, objective], return_inverse=True)
        lowers, of_lower = np.unique(boxes.lower[:, objective], return_inverse=True)
        above = _log_gains(means[:, objective], deviations[:, objective], uppers)[:, of_upper]
        below = _log_gains(means[:, objective], deviations[:, objective], lowers)[:, of_lower]
        with np.errstate(divide="ignore"):
            logs += above + np.log1p(-np.minimum(np.exp(below - above), 1.0))
    highest = logs.max(axis=1)
    safe = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(logs - safe[:, None]).sum(axis=1))


def _log_gains(means: Floats, deviations: Floats, levels: Floats) -> Floats:
    """Return the logarithm of the expected improvement on each level, shape (c, levels)."""
    gains = np.full((len(means), len(levels)), -np.inf)
    for column in np.flatnonzero(np.isfinite(levels)):
        gains[:, column] = log_expected_improvement(means, deviations, float(levels[column]))
    return gains


def thinned_front(rng: np.random.Generator, front: Floats) -> Floats:
    """Return a front, shape (k, m), or the extremes and random others of it where the boxes would be too many."""
    count, objectives = front.shape
    most = _MOST_OF_FRONT.get(objectives, _MOST_BEYOND)
    if count <= most:
        return front
    ends = np.unique([*front.argmin(axis=0), *front.argmax(axis=0)])[:most]
    others = rng.permutation(np.setdiff1d(np.arange(count), ends))[: most - len(ends)]
    return front[np.concatenate([ends, others])]
