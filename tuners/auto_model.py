"""The model of `Auto`: Gaussian processes of the transformed losses, refitted now and then, running trials believed.

Each view compresses the losses and expects length-scales in its own way, and the views take turns: where one of them is
misled, the next one is not.

    Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010 (the kriging believer)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .acquisition import log_expected_improvement
from .auto_settings import Settings, View
from .embedding import Embedding, active_dimension
from .gaussian_process import Posterior, Prior, condition, fit
from .layout import Floats
from .output_transform import transformed
from .regions import Branch

_FIRST_ITERATIONS, _ITERATIONS = 40, 12


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The posterior, and the points it stands on, those with the lowest mean first."""

    embedding: Embedding
    posterior: Posterior
    units: Floats
    means: Floats
    best: float  # the lowest mean at these points: observed losses may owe their place to noise

    def score(self, units: Floats) -> Floats:
        """Return the logarithm of the expected improvement at points, shape (m,)."""
        mean, deviation = self.posterior.predict(self.embedding.features(units))
        return log_expected_improvement(mean, deviation, self.best)

    def within(self, branch: Branch) -> Belief:
        """Return the same belief for a search that is to improve on the best of a branch, not of all."""
        inside = branch.contains(self.embedding.layout, self.units)
        if not inside.any():
            return self
        units = np.concatenate([self.units[inside], self.units[~inside]])
        return replace(self, units=units, best=float(self.means[inside][0]), means=np.empty(0))


class AutoModel:
    """Holds the hyper-parameters of each view from one suggestion to the next."""

    def __init__(self, embedding: Embedding, settings: Settings) -> None:
        self._embedding = embedding
        self._settings = settings
        self._theta: dict[View, Floats] = {}
        self._fitted_at: dict[View, int] = {}

    def belief(self, units: Floats, losses: Floats, doubt: Floats, running: Floats, turn: int) -> Belief:
        """Return what is believed after losses (n,) at units (n, d), with `running` (k, d) without one.

        `doubt` (n,) adds to the noise; `turn` counts suggestions.
        """
        view = self._settings.views[turn % len(self._settings.views)]
        features = self._embedding.features(units)
        targets = transformed(losses, view.quantile)
        self._refit(view, units, features, targets, doubt, turn)
        posterior = self._condition(view, features, targets, doubt)
        if len(running):
            more = self._embedding.features(running)
            believed = np.concatenate([targets, posterior.mean(more)])
            features, units = np.concatenate([features, more]), np.concatenate([units, running])
            doubt = np.append(doubt, np.zeros(len(running)))
            posterior = self._condition(view, features, believed, doubt)
        means = posterior.mean(features)
        order = np.argsort(means, kind="stable")
        return Belief(self._embedding, posterior, units[order], means[order], float(means[order[0]]))

    def _condition(self, view: View, features: Floats, targets: Floats, doubt: Floats) -> Posterior:
        return condition(self._theta[view], features, targets, self._embedding.groups, doubt)

    def _refit(
        self, view: View, units: Floats, features: Floats, targets: Floats, doubt: Floats, turn: int
    ) -> None:
        n, s = len(targets), self._settings
        every = 1 if n <= 40 else 2 if n < 100 else 5 if n < 200 else 10
        theta = self._theta.get(view)
        if theta is not None and turn - self._fitted_at[view] < every:
            return
        # Hvarfner et al. 2024: distances grow with the square root of the dimension, so length-scales must.
        length_scale = view.length_scale * math.sqrt(max(active_dimension(units), 1.0) / 4)
        prior = Prior(
            length_scale, s.length_scale_spread, trend=s.trend, noise=s.noise, noise_spread=s.noise_spread
        )
        iterations = _FIRST_ITERATIONS if theta is None else _ITERATIONS
        self._theta[view] = fit(features, targets, self._embedding.groups, prior, theta, iterations, doubt)
        self._fitted_at[view] = turn
