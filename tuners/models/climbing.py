"""Hill-climbing for the highest score in a region: many points at first, then changes of the best of them.

Spaces of choices, integers and branches have no gradients; for numbers the steps become small enough.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...numerics import Floats
from ..base import Embedding
from .regions import Region

_KEPT, _CLIMBERS, _CHANGES = 40, 8, 20


def climb(
    rng: np.random.Generator,
    embedding: Embedding,
    region: Region,
    score: Callable[[Floats], Floats],
    best: Floats,
    rounds: int,
) -> Floats:
    """Return points of the region, shape (m, d), those with the highest score first.

    `best` are the best points so far, shape (k, d); each round changes the leading candidates.
    """
    units = region.start(rng, embedding, best)
    scores = score(units)
    for _ in range(rounds):
        top = np.argsort(-scores, kind="stable")[:_KEPT]
        units, scores = units[top], scores[top]
        changed = region.change(rng, embedding, units[:_CLIMBERS], _CHANGES)
        units, scores = np.concatenate([units, changed]), np.concatenate([scores, score(changed)])
    return units[np.argsort(-scores, kind="stable")]
