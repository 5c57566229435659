"""The model of `Auto`: Gaussian processes of the transformed losses, refitted now and then, running trials believed.

Which losses are compressed, if any, is decided by the evidence for each way of seeing them.

    Snelson, Rasmussen and Ghahramani, Warped Gaussian Processes, NIPS 2003
    Ginsbourger, Le Riche and Carraro, Kriging is well-suited to parallelize optimization, 2010 (the kriging believer)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..base import Embedding, Floats, active_dimension
from ..moves import Branch, log_expected_improvement
from .auto_settings import Settings, View
from .gaussian_process import Posterior, Prior, condition, fit
from .output_transform import warped

_USUAL_SPREAD = 12**-0.5  # of a uniform number
_RARELY = 10**9
_Key = tuple[View, float, bool]
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


@dataclass(frozen=True, slots=True, eq=False)
class _Training:
    """What the model is made from: features (n, f), losses (n,), variances to add to the noise, active parameters."""

    features: Floats
    losses: Floats
    doubt: Floats
    active: float
    turn: int
    near: bool


class AutoModel:
    """Holds the choice of the view and the hyper-parameters of each from one suggestion to the next."""

    def __init__(self, embedding: Embedding, settings: Settings) -> None:
        self._embedding = embedding
        self._settings = settings
        self._theta: dict[_Key, Floats] = {}
        self._fitted_at: dict[_Key, int] = {}
        self._view: dict[bool, View] = {}
        self._compared_at: dict[bool, int] = {}

    def belief(
        self, units: Floats, losses: Floats, doubt: Floats, running: Floats, turn: int, near: bool
    ) -> Belief:
        """Return what is believed after losses (n,) at units (n, d), with `running` (k, d) without one.

        `doubt` (n,) adds to the noise; `turn` counts suggestions; `near` says that the points lie close together.
        """
        lens = Lens.on(self._embedding, units, near)
        known = _Training(lens.features(units), losses, doubt, max(active_dimension(units), 1.0), turn, near)
        view = self._best_view(known)
        features, targets, theta = known.features, warped(losses, view.quantile)[0], self._fitted(view, known)
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

    def _best_view(self, known: _Training) -> View:
        """Return the view with the highest evidence, compared now or a few suggestions ago."""
        views, near = self._settings.views, known.near
        if not self._settings.compare_views:
            return views[known.turn % len(views)]
        due = known.turn - self._compared_at.get(near, -_RARELY) >= 2 * _interval(known)
        if near not in self._view or (due and len(views) > 1):
            self._view[near] = max(views, key=lambda view: self._log_evidence(view, known))
            self._compared_at[near] = known.turn
        return self._view[near]

    def _log_evidence(self, view: View, known: _Training) -> float:
        targets, log_slopes = warped(known.losses, view.quantile)
        theta = self._fitted(view, known)
        posterior = condition(theta, known.features, targets, self._embedding.groups, known.doubt)
        return posterior.log_evidence(targets) + log_slopes

    def _fitted(self, view: View, known: _Training) -> Floats:
        """Return the hyper-parameters of the last fit, or of a new one if there are many more results."""
        s = self._settings
        noise = s.noises[0 if known.near else known.turn % len(s.noises)]
        key = view, noise, known.near
        theta = self._theta.get(key)
        if theta is not None and known.turn - self._fitted_at[key] < _interval(known):
            return theta
        prior = Prior(
            # Hvarfner et al. 2024: distances grow with the square root of the dimension, so length-scales must.
            view.length_scale * math.sqrt(known.active / 4),
            s.length_scale_spread,
            trend=s.near_trend if known.near else s.trend,
            noise=noise,
            noise_spread=s.noise_spread,
        )
        iterations = _FIRST_ITERATIONS if theta is None else _ITERATIONS
        targets = warped(known.losses, view.quantile)[0]
        groups = self._embedding.groups
        self._theta[key] = fit(known.features, targets, groups, prior, theta, iterations, known.doubt)
        self._fitted_at[key] = known.turn
        return self._theta[key]


def _interval(known: _Training) -> int:
    """Return after how many suggestions to fit anew; a neighbourhood moves, so it is soon another one."""
    count = len(known.losses)
    return 1 if count <= 30 else 4 if count < 100 or known.near else 8 if count < 200 else 12
