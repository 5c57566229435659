"""The hyper-parameters of Gaussian processes, kept from one suggestion to the next and fitted again at intervals."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from ...numerics import Floats, Ints, Posterior, Prior, condition, fit

_FIRST_ITERATIONS, _ITERATIONS = 40, 12


def interval_after(count: int, *, near: bool = False) -> int:
    """Return after how many suggestions to fit again, with so many results.

    A neighbourhood of the best point moves, so its fit ages sooner.
    """
    return 1 if count <= 30 else 4 if count < 100 or near else 8 if count < 200 else 12


class HyperParameters:
    """The hyper-parameters of several processes by name; each fit starts from the one before."""

    def __init__(self, groups: Ints) -> None:
        self._groups = groups
        self._found: dict[Hashable, tuple[Floats, int]] = {}

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

        `suggested` counts suggestions, after `interval` of which a fit is old.
        """
        earlier, fitted_at = self._found.get(name, (None, 0))
        due = fitted_at + (interval_after(len(targets)) if interval is None else interval)
        if earlier is not None and suggested < due:
            return earlier
        iterations = _FIRST_ITERATIONS if earlier is None else _ITERATIONS
        found = fit(features, targets, self._groups, prior, earlier, iterations)
        self._found[name] = found, suggested
        return found

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
