"""Directions that are spread evenly over several objectives, and the points of a front that are near each of them.

Das and Dennis, Normal-Boundary Intersection, SIAM Journal on Optimization 8(3), 1998 (the directions)
Deb and Jain, An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based Nondominated
Sorting Approach, Part I, IEEE Transactions on Evolutionary Computation 18(4), 2014 (the niches)
"""

from __future__ import annotations

import itertools

import numpy as np

from ...numerics import Bools, Floats, Ints, is_nondominated

_OTHER_AXES = 1e-6  # the weight of an axis in the search for the extreme point of another
_FLAT = 1e-12  # a range, in units of the largest loss, that is none


def reference_points(objectives: int, most: int) -> Floats:
    """Return the finest even grid of at most `most` directions, or else the coarsest, shape (h, m).

    >>> reference_points(2, 4).round(2).tolist()
    [[0.0, 1.0], [0.33, 0.67], [0.67, 0.33], [1.0, 0.0]]
    """
    found = _layers(objectives, 1)
    for divisions in range(2, most):
        finer = _layers(objectives, divisions)
        if len(finer) > most:
            break
        found = finer
    return found


def _layers(objectives: int, divisions: int) -> Floats:
    """Return the grid; one too coarse for points inside the simplex gets an inner layer (Deb and Jain, section V)."""
    outer = _lattice(objectives, divisions)
    if divisions >= objectives:
        return outer
    return np.concatenate([outer, (_lattice(objectives, divisions - 1) + 1 / objectives) / 2])


def _lattice(objectives: int, divisions: int) -> Floats:
    bars = list(itertools.combinations(range(objectives + divisions - 1), objectives - 1))
    ends = np.pad(np.array(bars, dtype=np.float64).reshape(-1, objectives - 1), ((0, 0), (1, 1)))
    ends[:, 0], ends[:, -1] = -1.0, objectives + divisions - 1.0
    return (np.diff(ends) - 1) / max(divisions, 1)


def niched(rng: np.random.Generator, losses: Floats, kept: Bools, count: int, points: Floats) -> Bools:
    """Return which of the losses, shape (n, m), to keep: those kept already, and others until there are `count`.

    Others come from the niches with the fewest: the nearest to the direction of an empty one, a random one of another
    (Deb and Jain 2014, algorithm 4).
    """
    niche, distance = _associated(_normalised(losses), points)
    crowd = np.bincount(niche[kept], minlength=len(points))
    kept = kept.copy()
    for _ in range(count - int(kept.sum())):
        candidates = np.flatnonzero(~kept)
        fewest = crowd[niche[candidates]]
        chosen = rng.choice(np.unique(niche[candidates[fewest == fewest.min()]]))
        there = candidates[niche[candidates] == chosen]
        kept[rng.choice(there) if crowd[chosen] else there[np.argmin(distance[there])]] = True
        crowd[chosen] += 1
    return kept


def _normalised(losses: Floats) -> Floats:
    """Return losses with the ideal point at 0 and the intercepts of the front at 1 (Deb and Jain 2014, algorithm 2)."""
    losses = losses / np.maximum(np.abs(losses).max(axis=0), np.finfo(np.float64).tiny)
    moved = losses - losses.min(axis=0)
    front = moved[is_nondominated(losses)]
    worst = np.where((high := front.max(axis=0)) > _FLAT, high, 1.0)
    weights = np.where(np.eye(losses.shape[1]) > 0, 1.0, _OTHER_AXES)
    extremes = front[np.argmin((front[:, None] / weights).max(axis=2), axis=0)]
    try:
        with np.errstate(divide="ignore", over="ignore"):
            intercepts = 1 / np.linalg.solve(extremes / worst, np.ones(len(worst)))
    except np.linalg.LinAlgError:
        return moved / worst
    is_plane = bool(np.isfinite(intercepts).all() and (intercepts > _OTHER_AXES).all())
    return moved / (worst * intercepts if is_plane else worst)


def _associated(scaled: Floats, points: Floats) -> tuple[Ints, Floats]:
    """Return the nearest direction of each point and the distance to it, shape (n,) each (algorithm 3)."""
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    along = scaled @ directions.T
    squared = np.maximum((scaled**2).sum(axis=1)[:, None] - along**2, 0.0)
    nearest = np.argmin(squared, axis=1)
    return nearest, np.sqrt(squared[np.arange(len(scaled)), nearest])
