"""The ingredients of `Auto`, and its model: Gaussian processes of the warped losses, with pending points imputed.

The evidence for each way of warping decides which losses are compressed, if any.

    Snelson, Rasmussen and Ghahramani, Warped Gaussian Processes, NIPS 2003
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...numerics import Floats, Ints, Posterior, Prior, condition
from ..base import Embedding
from ..models import (
    Branch,
    HyperParameters,
    dimension_factor,
    interval_after,
    log_expected_improvement,
    warped,
)

_USUAL_SPREAD = 12**-0.5  # of a uniform number
_NEVER = -(10**9)


@dataclass(frozen=True, slots=True)
class Warping:
    """One way to warp the losses: those above `quantile` are compressed; `length_scale` is the prior's median."""

    quantile: float | None = 0.5
    length_scale: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The ingredients of `AutoTuner`; docs/lab/search-quality.md says what each is worth.

    They are not part of the public interface: users do not need them, and they may change. Shares are fractions of the
    suggestions after the initial design.
    """

    design_points: int = 8  # suggestions before the model
    centre_first: bool = True  # start with the middle of every range
    start_width: float = 0.7  # of each range, in its middle: the other first suggestions
    warpings: tuple[Warping, ...] = (Warping(0.5), Warping(0.25), Warping(0.1))
    compare_warpings: bool = True  # use the one with the highest evidence; otherwise they take turns
    bend: float = 5.0  # how far the low values of wide uniform ranges are spread out; 0 is not at all
    ordered_choices: bool = True  # choices between numbers are ordered, too
    shared_names: bool = True  # parameters with one name in different branches share what is learned
    largest_set: int = 250  # results that the model is fitted to
    near_set: int = 150  # the same in the trust region: the nearest to the best
    length_scale_spread: float = 0.8  # of the logarithm, as are the other spreads
    trend: float = 0.0  # of the prior: how much of the targets may be a quadratic function
    near_trend: float = 0.1  # the same in the trust region
    noises: tuple[float, ...] = (1e-3, 1e-2)  # they take turns: exact results, and noisy ones
    noise_spread: float = 2.0
    least_gain: float = 0.5  # where the best results tie: what counts, in steps to the next result
    plateau_share: float = 0.25  # of the results: where as many share the best level, suggestions are random
    model_free_share: float = 0.15  # small changes of the best results
    branch_share: float = 0.12  # the best expected of a branch that was visited less
    nested_only: bool = True  # only branches of choices that have nested parameters
    early_branches: float = 8.0  # divided by the number of suggestions: a higher share of branches at first
    local_share: float = 0.25  # inside the trust region
    late_local_share: float = 0.6  # the same beyond 200 suggestions
    descend_after: int = 200  # suggestions; later ones in the trust region may minimise the expected loss
    random_share_when_stopped: float = 0.25  # approached as more trials are stopped early
    scalarised_share: float = 0.5  # of several objectives: one random weighting of them, not the volume
    beyond: tuple[float, ...] = (0.1, 1.0)  # the reference point is so many ranges beyond the front, in turn
    failure_model: bool = True  # weigh by the probability that a trial does not fail
    climbers: int = 6  # best results to search around
    climb_rounds: int = 4


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Acquisition:
    """Expected improvement under a posterior; `units` are the points it was fitted to, with their `means`.

    They are in the order of the means, the lowest first; `within` a branch its points come first. An improvement by
    less than `least` does not count. With `is_descending` the lowest mean counts instead.
    """

    transform: FeatureTransform
    posterior: Posterior
    units: Floats
    means: Floats
    best: float  # the lowest mean at these points: a low observed loss may be noise
    least: float
    is_descending: bool = False

    def score(self, units: Floats) -> Floats:
        """Return the logarithm of the expected improvement at points, shape (m,)."""
        if self.is_descending:
            return -self.posterior.mean(self.transform.features(units))
        mean, deviation = self.posterior.predict(self.transform.features(units))
        return log_expected_improvement(mean, deviation, self.best - self.least)

    def within(self, branch: Branch) -> Acquisition:
        """Return the same with improvement measured against the best of a branch."""
        inside = branch.contains(self.transform.embedding.layout, self.units)
        if not inside.any():
            return self
        order = np.concatenate([np.flatnonzero(inside), np.flatnonzero(~inside)])
        means = self.means[order]
        return replace(self, units=self.units[order], means=means, best=float(means[0]))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FeatureTransform:
    """Features as the model uses them; those of nearby points are rotated to their principal axes and rescaled."""

    embedding: Embedding
    centre: Floats
    numbers: Ints  # the features that are rotated
    rotation: Floats  # of these, and their scaling
    scale: Floats  # of the others

    @classmethod
    def of(cls, embedding: Embedding, units: Floats, near: bool) -> FeatureTransform:
        """Return the transform for points, shape (n, d), best first; `near` says that they lie close together."""
        every = np.array([feature for _, feature in embedding.numbers], dtype=np.int64)
        numbers, places = np.unique(every, return_inverse=True)
        width = len(embedding.groups)
        start = cls(
            embedding=embedding,
            centre=np.zeros(width),
            numbers=numbers,
            rotation=np.eye(len(numbers)),
            scale=np.ones(width),
        )
        if not near:
            return start
        features = embedding.features(units)
        good = features[: max(len(features) // 3, 2)][:, every]
        axes = np.eye(len(numbers))
        axes[np.ix_(places, places)] = np.linalg.eigh(np.atleast_2d(np.cov(good, rowvar=False)))[1]
        rotated = replace(start, centre=features.mean(axis=0), rotation=axes)
        spread = rotated.features(units).std(axis=0)
        scale = np.where(spread > 1e-9, np.clip(_USUAL_SPREAD / np.maximum(spread, 1e-9), 1.0, 1e6), 1.0)
        rotation = axes * scale[numbers]
        scale[numbers] = 1.0
        return replace(rotated, rotation=rotation, scale=scale)

    def features(self, units: Floats) -> Floats:
        """Return the features of points, shape (m, f)."""
        features = self.embedding.features(units)
        features -= self.centre
        features[:, self.numbers] = features[:, self.numbers] @ self.rotation
        features *= self.scale
        return features


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Training:
    """What the model learns from: features (n, f), losses (n,), and the factor of length-scales."""

    features: Floats
    losses: Floats
    factor: float
    suggested: int
    near: bool


class AutoModel:
    """Keeps the warping and its hyper-parameters from one suggestion to the next."""

    def __init__(self, embedding: Embedding, settings: Settings) -> None:
        self._embedding = embedding
        self._settings = settings
        self._parameters = HyperParameters(embedding.groups)
        self._warping: dict[bool, Warping] = {}
        self._compared_at: dict[bool, int] = {}

    def acquisition(
        self, units: Floats, losses: Floats, *, pending: Floats, suggested: int, near: bool
    ) -> Acquisition:
        """Return the acquisition function after losses (n,) at units (n, d).

        Points in `pending` (k, d) have no result yet and count with their expected one; `suggested` counts
        suggestions; `near` says that the points lie close together.
        """
        transform = FeatureTransform.of(self._embedding, units, near)
        known = _Training(
            features=transform.features(units),
            losses=losses,
            factor=dimension_factor(units),
            suggested=suggested,
            near=near,
        )
        warping = self._best_warping(known)
        targets, theta = warped(losses, warping.quantile)[0], self._fitted(warping, known)
        more = transform.features(pending)
        posterior, means = self._parameters.believed(theta, known.features, targets, more)
        units = np.concatenate([units, pending])
        order = np.argsort(means, kind="stable")
        return Acquisition(
            transform=transform,
            posterior=posterior,
            units=units[order],
            means=means[order],
            best=float(means[order[0]]),
            least=self._settings.least_gain * _step(targets),
        )

    def _best_warping(self, known: _Training) -> Warping:
        """Return the warping with the highest evidence, compared now or a few suggestions ago."""
        warpings, near = self._settings.warpings, known.near
        if not self._settings.compare_warpings:
            return warpings[known.suggested % len(warpings)]
        due = known.suggested - self._compared_at.get(near, _NEVER) >= 2 * _interval(known)
        if near not in self._warping or (due and len(warpings) > 1):
            self._warping[near] = max(warpings, key=lambda warping: self._log_evidence(warping, known))
            self._compared_at[near] = known.suggested
        return self._warping[near]

    def _log_evidence(self, warping: Warping, known: _Training) -> float:
        targets, log_slopes = warped(known.losses, warping.quantile)
        theta = self._fitted(warping, known)
        posterior = condition(theta, known.features, targets, self._embedding.groups)
        return posterior.log_evidence(targets) + log_slopes

    def _fitted(self, warping: Warping, known: _Training) -> Floats:
        """Return the hyper-parameters of the last fit, or of a new one if there are many more results."""
        s = self._settings
        noise = s.noises[0 if known.near else known.suggested % len(s.noises)]
        prior = Prior(
            length_scale=warping.length_scale * known.factor,
            length_scale_spread=s.length_scale_spread,
            trend=s.near_trend if known.near else s.trend,
            noise=noise,
            noise_spread=s.noise_spread,
        )
        return self._parameters.fitted(
            (warping, noise, known.near),
            known.features,
            warped(known.losses, warping.quantile)[0],
            prior,
            suggested=known.suggested,
            interval=_interval(known),
        )


def _step(targets: Floats) -> float:
    """Return the step from the best target to the next, shape (n,), if several are the best; else 0.

    A metric with few levels, an accuracy on few examples, cannot improve by less; without this, the search stays
    where the best level is known.
    """
    others = targets[targets > targets.min()]
    return float(others.min() - targets.min()) if 0 < len(others) < len(targets) - 1 else 0.0


def _interval(known: _Training) -> int:
    return interval_after(len(known.losses), near=known.near)
