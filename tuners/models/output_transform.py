"""How losses are shown to the model: what is bad is compressed, so that it tells the good apart from the better.

Cowen-Rivers et al., HEBO, JAIR 2022, and Song et al., Vizier, 2024, show that this decides more than the acquisition.
"""

from __future__ import annotations

import numpy as np

from ..base import Floats

_HUGE = 1e300


def transformed(losses: Floats, quantile: float | None = 0.5) -> Floats:
    """Return targets of mean 0 and variance 1 for finite losses, shape (n,); infinite ones count as the worst.

    Those below the quantile stay as they are, the others are compressed; with None, none are.
    """
    return warped(losses, quantile)[0]


def warped(losses: Floats, quantile: float | None) -> tuple[Floats, float]:
    """Return the targets, and the logarithm of the density of losses where that of targets is 1.

    The second makes transforms comparable by the evidence for them (Snelson, Rasmussen and Ghahramani, Warped Gaussian
    Processes, NIPS 2003, eq. 6).
    """
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return np.zeros(len(losses)), 0.0
    capped = np.minimum(losses, finite.max())
    shifted, log_slopes = (capped, 0.0) if quantile is None else _compressed(capped, quantile)
    spread = float(shifted.std())
    if not spread > 0:
        return np.zeros(len(losses)), 0.0
    return (shifted - shifted.mean()) / spread, log_slopes - len(losses) * float(np.log(spread))


def _compressed(losses: Floats, quantile: float) -> tuple[Floats, float]:
    """What is below the quantile as it is, in units of its distance to the best; the rest logarithmically."""
    best, turn = float(losses.min()), float(np.quantile(losses, quantile))
    if turn <= best:
        above = losses[losses > best]
        turn = float(above.min()) if len(above) else best + 1.0
    with np.errstate(over="ignore"):
        z = np.minimum((losses - best) / (turn - best), _HUGE)
    logs = np.log(np.maximum(z, 1))
    return np.where(z > 1, 1 + logs, z), -float(logs.sum()) - len(losses) * float(np.log(turn - best))
