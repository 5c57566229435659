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

_USUAL_SPREAD = 12**-0.5  # of a uniform number
_FIRST_ITERATIONS, _ITERATIONS = 40, 12


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """The posterior, and the points it stands on, those with the lowest mean first."""

    lens: Lens
    posterior: Posterior
    units: Floats
    means: Floats
    best: float  # the lowest mean at these points: observed losses may owe their place to noise

    def score(self, units: Floats) -> Floats:
        """Return the logarithm of the expected improvement at points, shape (m,)."""
        mean, deviation = self.posterior.predict(self.lens.features(units))
        return log_expected_improvement(mean, deviation, self.best)

    def within(self, branch: Branch) -> Belief:
        """Return the same belief for a search that is to improve on the best of a branch, not of all."""
        inside = branch.contains(self.lens.embedding.layout, self.units)
        if not inside.any():
            return self
        units = np.concatenate([self.units[inside], self.units[~inside]])
        return replace(self, units=units, best=float(self.means[inside][0]), means=np.empty(0))


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """Features as the model sees them: of points near each other, along their principal axes, at the usual scale."""

    embedding: Embedding
    centre: Floats
    turn: Floats

    @classmethod
    def on(cls, embedding: Embedding, units: Floats, near: bool) -> Lens:
        """Return the lens for points, shape (n, d), the best first, that lie close together if `near`."""
        features = embedding.features(units)
        turn = np.eye(features.shape[1])
        if not near:
            return cls(embedding, np.zeros(len(turn)), turn)
        numbers = np.array([feature for _, feature in embedding.numbers], dtype=np.int64)
        good = features[: max(len(features) // 3, 2)][:, numbers]
        turn[np.ix_(numbers, numbers)] = np.linalg.eigh(np.atleast_2d(np.cov(good, rowvar=False)))[1]
        centre = features.mean(axis=0)
        spread = ((features - centre) @ turn).std(axis=0)
        zoom = np.where(spread > 1e-9, np.clip(_USUAL_SPREAD / np.maximum(spread, 1e-9), 1.0, 1e6), 1.0)
        return cls(embedding, centre, turn * zoom)

    def features(self, units: Floats) -> Floats:
        """Return the features of points, shape (m, f)."""
        return (self.embedding.features(units) - self.centre) @ self.turn


class AutoModel:
    """Holds the hyper-parameters of each view from one suggestion to the next."""

    def __init__(self, embedding: Embedding, settings: Settings) -> None:
        self._embedding = embedding
        self._settings = settings
        self._theta: dict[tuple[View, bool], Floats] = {}
        self._fitted_at: dict[tuple[View, bool], int] = {}

    def belief(
        self, units: Floats, losses: Floats, doubt: Floats, running: Floats, turn: int, near: bool
    ) -> Belief:
        """Return what is believed after losses (n,) at units (n, d), with `running` (k, d) without one.

        `doubt` (n,) adds to the noise; `turn` counts suggestions; `near` says that the points lie close together.
        """
        view = self._settings.views[turn % len(self._settings.views)]
        lens = Lens.on(self._embedding, units, near)
        features = lens.features(units)
        targets = transformed(losses, view.quantile)
        theta = self._hyperparameters(view, near, units, features, targets, doubt, turn)
        posterior = condition(theta, features, targets, self._embedding.groups, doubt)
        if len(running):
            more = lens.features(running)
            believed = np.concatenate([targets, posterior.mean(more)])
            features, units = np.concatenate([features, more]), np.concatenate([units, running])
            doubt = np.append(doubt, np.zeros(len(running)))
            posterior = condition(theta, features, believed, self._embedding.groups, doubt)
        means = posterior.mean(features)
        order = np.argsort(means, kind="stable")
        return Belief(lens, posterior, units[order], means[order], float(means[order[0]]))

    def _hyperparameters(
        self,
        view: View,
        near: bool,
        units: Floats,
        features: Floats,
        targets: Floats,
        doubt: Floats,
        turn: int,
    ) -> Floats:
        """Return those of the last fit, or of a new one if there are many more results."""
        n, s, key = len(targets), self._settings, (view, near)
        every = 1 if n <= 40 else 2 if n < 100 else 5 if n < 200 else 10
        theta = self._theta.get(key)
        if theta is not None and turn - self._fitted_at[key] < every:
            return theta
        # Hvarfner et al. 2024: distances grow with the square root of the dimension, so length-scales must.
        length_scale = view.length_scale * math.sqrt(max(active_dimension(units), 1.0) / 4)
        prior = Prior(
            length_scale,
            s.length_scale_spread,
            trend=s.near_trend if near else s.trend,
            noise=s.near_noise if near else s.noise,
            noise_spread=s.noise_spread,
        )
        iterations = _FIRST_ITERATIONS if theta is None else _ITERATIONS
        self._theta[key] = fit(features, targets, self._embedding.groups, prior, theta, iterations, doubt)
        self._fitted_at[key] = turn
        return self._theta[key]
