"""Output warping: compresses bad losses, so that the model distinguishes the good ones.

Cowen-Rivers et al., HEBO, JAIR 2022, and Song et al., Vizier, 2024, show that this decides more than the acquisition.
"""

from __future__ import annotations

import numpy as np

from ...numerics import Floats

_HUGE = 1e300


def warped(losses: Floats, quantile: float | None) -> tuple[Floats, float]:
    """Return targets of mean 0 and variance 1 for losses, shape (n,), and the log Jacobian of the warping.

    Losses below the quantile keep their shape, the others are compressed; with None, none are. Infinite losses count
    as the worst. The log Jacobian makes the evidence of different warpings comparable (Snelson, Rasmussen and
    Ghahramani, Warped Gaussian Processes, NIPS 2003, eq. 6).
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
    """Return losses in units of the quantile's distance to the best, compressed above it, and the log Jacobian."""
    best, bend = float(losses.min()), float(np.quantile(losses, quantile))
    if bend <= best:
        above = losses[losses > best]
        bend = float(above.min()) if len(above) else best + max(1.0, abs(best))
    with np.errstate(over="ignore"):
        z = np.minimum((losses - best) / (bend - best), _HUGE)
    logs = np.log(np.maximum(z, 1))
    return np.where(z > 1, 1 + logs, z), -float(logs.sum()) - len(losses) * float(np.log(bend - best))
