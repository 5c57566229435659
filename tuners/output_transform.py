"""How losses are shown to the model: what is bad is compressed, so that it tells the good apart from the better.

Cowen-Rivers et al., HEBO, JAIR 2022, and Song et al., Vizier, 2024, show that this decides more than the acquisition.
"""

from __future__ import annotations

import numpy as np

from .layout import Floats

_HUGE = 1e300


def transformed(losses: Floats, quantile: float | None = 0.25) -> Floats:
    """Return targets of mean 0 and variance 1 for finite losses, shape (n,); infinite ones count as the worst.

    Those below the quantile stay as they are, the others are compressed; with None, none are.
    """
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return np.zeros(len(losses))
    capped = np.minimum(losses, finite.max())
    shifted = capped if quantile is None else _compressed(capped, quantile)
    spread = float(shifted.std())
    return (shifted - shifted.mean()) / spread if spread > 0 else np.zeros(len(losses))


def _compressed(losses: Floats, quantile: float) -> Floats:
    """What is below the quantile as it is, in units of its distance to the best; the rest logarithmically."""
    best, turn = float(losses.min()), float(np.quantile(losses, quantile))
    if turn <= best:
        above = losses[losses > best]
        turn = float(above.min()) if len(above) else best + 1.0
    with np.errstate(over="ignore"):
        z = np.minimum((losses - best) / (turn - best), _HUGE)
    return np.where(z > 1, 1 + np.log(np.maximum(z, 1)), z)
