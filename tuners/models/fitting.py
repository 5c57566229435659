"""How Gaussian processes are fitted to losses: what they are fitted to, and their hyper-parameters.

Output warping compresses bad losses, so that a model distinguishes the good ones: Cowen-Rivers et al., HEBO, JAIR 2022,
and Song et al., Vizier, 2024, show that this decides more than the acquisition. Hyper-parameters are kept from one
suggestion to the next, and fitted again at intervals.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from ...numerics import Floats, Ints, Posterior, Prior, condition, fit

_HUGE = 1e300
_FIRST_ITERATIONS, _ITERATIONS = 40, 12


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


def dimension_factor(units: Floats) -> float:
    """Return by what length-scales grow with the number of active parameters at points (n, d); it is 1 for four.

    Distances grow with the square root of the dimension, so length-scales must (Hvarfner et al., ICML 2024).
    """
    active = float((~np.isnan(units)).sum(axis=1).mean()) if len(units) else 1.0
    return math.sqrt(max(active, 1.0) / 4)


def interval_after(count: int, *, near: bool = False) -> int:
    """Return after how many suggestions to fit again, with so many results.

    A neighbourhood of the best point moves, so its fit ages sooner.
    """
    return 1 if count <= 30 else 4 if count < 100 or near else 8 if count < 200 else 12


class HyperParameters:
    """The hyper-parameters of several processes by name; each fit starts from the one before."""

    def __init__(self, groups: Ints) -> None:
        self._groups = groups
        self._fits: dict[Hashable, tuple[Floats, int]] = {}

    def fitted(
        self,
        name: Hashable,
        features: Floats,
        targets: Floats,
        prior: Prior,
        *,
        suggested: int,
        interval: int | None = None,
    ) -> Floats:
        """Return those for features (n, f) and targets (n,): of the last fit, or of a new one if that is old.

        `suggested` counts suggestions; a fit is old after `interval` more of them.
        """
        earlier, fitted_at = self._fits.get(name, (None, 0))
        due = fitted_at + (interval_after(len(targets)) if interval is None else interval)
        if earlier is not None and suggested < due:
            return earlier
        iterations = _FIRST_ITERATIONS if earlier is None else _ITERATIONS
        theta = fit(features, targets, self._groups, prior, earlier, iterations)
        self._fits[name] = theta, suggested
        return theta

    def believed(
        self, theta: Floats, features: Floats, targets: Floats, pending: Floats
    ) -> tuple[Posterior, Floats]:
        """Return the posterior in which points without a target, (k, f), have their expected one; and all means.

        Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010 (the kriging
        believer).
        """
        posterior = condition(theta, features, targets, self._groups)
        if len(pending):
            targets = np.concatenate([targets, posterior.mean(pending)])
            features = np.concatenate([features, pending])
            posterior = condition(theta, features, targets, self._groups)
        return posterior, posterior.mean(features)
