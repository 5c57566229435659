"""The first suggestions: the middle of the space, then a Latin hypercube spread out in the model's features."""

from __future__ import annotations

import numpy as np

from ...numerics import Floats
from ..base import Embedding, SearchPrior, latin_hypercube

_DESIGNS = 40  # drawn; the one whose closest points are furthest apart is kept


def initial_design(
    rng: np.random.Generator, embedding: Embedding, prior: SearchPrior, count: int, *, centre_first: bool
) -> Floats:
    """Return `count` points, shape (count, d), NaN where inactive.

    Every parameter is stratified (McKay et al. 1979); of several such designs the maximin one is taken (Johnson et al.
    1990). With a prior, the middle is its centre, and every second point is drawn from it.
    """
    dimension = embedding.layout.dimension
    centre = _centre_of(rng, embedding)[None] if centre_first else np.empty((0, dimension))
    size = count - len(centre)
    designs = [
        embedding.snap(prior.mixed(np.concatenate([centre, latin_hypercube(rng, size, dimension)])))
        for _ in range(_DESIGNS)
    ]
    return max(designs, key=lambda points: _smallest_distance(embedding.features(points)))


def _centre_of(rng: np.random.Generator, embedding: Embedding) -> Floats:
    """Return the point with every number in the middle of its range and any options, shape (d,)."""
    layout = embedding.layout
    point = np.full(layout.dimension, 0.5)
    point[layout.choices] = rng.random(len(layout.choices))
    return point


def _smallest_distance(features: Floats) -> float:
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    squared[np.arange(len(squared)), np.arange(len(squared))] = np.inf
    return float(squared.min(initial=np.inf))
