"""How losses are shown to the model: what is bad is compressed, so that it tells the good apart from the better.

Cowen-Rivers et al., HEBO, JAIR 2022, and Song et al., Vizier, 2024, show that this decides more than the acquisition.
"""

from __future__ import annotations

import numpy as np

from .layout import Floats


def transformed(losses: Floats, kind: str = "logmed") -> Floats:
    """Return targets of mean 0 and variance 1 for finite losses, shape (n,); infinite ones count as the worst."""
    finite = losses[np.isfinite(losses)]
    if not len(finite):
        return np.zeros(len(losses))
    capped = np.minimum(losses, finite.max())
    shifted = _TRANSFORMS[kind](capped)
    spread = float(shifted.std())
    return (shifted - shifted.mean()) / spread if spread > 0 else np.zeros(len(losses))


def _log_worse_half(losses: Floats) -> Floats:
    """The better half as it is, in units of its width; the worse half logarithmically."""
    best, median = float(losses.min()), float(np.median(losses))
    width = median - best
    if width <= 0:
        above = losses[losses > best]
        width = float(above.min()) - best if len(above) else 1.0
    z = losses / width - best / width
    return np.where(z > 1, 1 + np.log(np.maximum(z, 1)), z)


_TRANSFORMS = {"logmed": _log_worse_half, "none": lambda losses: losses}
