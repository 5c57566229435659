"""The model of `Auto` for several objectives and for limits on outcomes: a Gaussian process each.

Emmerich, Deutz and Klinkenberg, Hypervolume-based Expected Improvement, CEC 2011
Gardner et al., Bayesian Optimization with Inequality Constraints, ICML 2014
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...numerics import Bools, Floats, Ints, Posterior, Prior, is_nondominated
from ..base import Embedding, Outcomes
from ..models import (
    Boxes,
    Branch,
    HyperParameters,
    dimension_factor,
    log_expected_hypervolume_improvement,
    log_expected_improvement,
    thinned_front,
)
from .model import Settings

_GOOD = 0.25  # share of the results that are never compressed
_SUM_WEIGHT = 0.05  # weight of the sum in a scalarisation, which makes every minimum lie on the front


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Results:
    """What trials at `units`, shape (n, d), reported, best first: losses (n, m) and excesses over limits (n, c).

    `rows` (n,) grow in the order of suggestion. Failed trials have the worst losses and excesses. Those of stopped
    trials, which are not `final`, are predicted: they shape the model, and growth is not measured against them.
    """

    rows: Ints
    units: Floats
    losses: Floats
    excesses: Floats
    final: Bools

    @property
    def feasible(self) -> Bools:
        """Which trials keep all limits, shape (n,)."""
        return np.all(self.excesses <= 0, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Limit:
    """The process of an excess, and its value where the limit lies."""

    posterior: Posterior
    zero: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OutcomeAcquisition:
    """The expected growth of the volume that feasible trials dominate, times the probability of being feasible.

    With one objective the volume is the improvement. Before a trial is feasible, the probability alone counts.
    `means` (n, m) are those of the objectives at `units`, best first; growth below the `floor` (m,) does not count.
    """

    embedding: Embedding
    units: Floats
    goals: Sequence[Posterior]
    limits: Sequence[_Limit]
    means: Floats
    feasible: Bools
    reference: Floats
    floor: Floats
    rng: np.random.Generator
    boxes: Boxes | None = None

    def score(self, units: Floats) -> Floats:
        """Return the logarithm of the acquisition function at points, shape (k,)."""
        from scipy.special import log_ndtr

        features = self.embedding.features(units)
        scores = np.zeros(len(units)) if self.boxes is None else self._gain(features, self.boxes)
        for limit in self.limits:
            mean, deviation = limit.posterior.predict(features)
            scores += log_ndtr((limit.zero - mean) / deviation)
        return scores

    def _gain(self, features: Floats, boxes: Boxes) -> Floats:
        predicted = [goal.predict(features) for goal in self.goals]
        if len(predicted) == 1:
            return log_expected_improvement(*predicted[0], float(boxes.upper[0, 0]))
        means, deviations = (np.column_stack(parts) for parts in zip(*predicted, strict=True))
        return log_expected_hypervolume_improvement(means, deviations, boxes)

    def against(self, rows: Bools) -> OutcomeAcquisition:
        """Return the same with the growth measured against these points, shape (n,), if one of them is feasible."""
        chosen = rows & self.feasible
        if not chosen.any():
            return self
        means = self.means[chosen]
        front = thinned_front(self.rng, means[is_nondominated(means)])
        boxes = Boxes.left_by(front, self.reference)
        # Where a single point leads, the floor may leave no growth at all.
        return replace(self, boxes=boxes if len(front) == 1 else boxes.above(self.floor))

    def within(self, branch: Branch) -> OutcomeAcquisition:
        """Return the same with the growth measured against the points of a branch."""
        return self.against(branch.contains(self.embedding.layout, self.units))


class OutcomeModel:
    """Keeps the hyper-parameters of all processes from one suggestion to the next."""

    def __init__(self, embedding: Embedding, settings: Settings, outcomes: Outcomes) -> None:
        self._embedding = embedding
        self._settings = settings
        self._outcomes = outcomes
        self._parameters = HyperParameters(embedding.groups)

    def acquisition(
        self, rng: np.random.Generator, results: Results, *, pending: Floats, suggested: int
    ) -> OutcomeAcquisition:
        """Return the acquisition function after some results.

        Points in `pending` (k, d) have no result yet and count with their expected ones; `suggested` counts
        suggestions.
        """
        features, more = self._embedding.features(results.units), self._embedding.features(pending)
        noise = self._settings.noises[suggested % len(self._settings.noises)]
        prior = Prior(
            length_scale=0.5 * dimension_factor(results.units),
            length_scale_spread=self._settings.length_scale_spread,
            noise=noise,
            noise_spread=self._settings.noise_spread,
        )

        def process(name: str, targets: Floats) -> tuple[Posterior, Floats]:
            theta = self._parameters.fitted((name, noise), features, targets, prior, suggested=suggested)
            return self._parameters.believed(theta, features, targets, more)

        turn = suggested // len(self._settings.noises)
        beyond = 1 + self._settings.beyond[turn % len(self._settings.beyond)]
        goals, means, reference = list[Posterior](), list[Floats](), list[float]()
        for place, objective in enumerate(self._outcomes.goals):
            scaled = _Scaled.of(results.losses[:, place], self._bend(results, place))
            posterior, expected = process(f"objective {place}", scaled.targets)
            goals.append(posterior)
            means.append(expected)
            given = None if objective.reference is None else objective.sign * objective.reference
            reference.append(scaled.target(scaled.best + beyond * scaled.unit if given is None else given))
        limits = list[_Limit]()
        for place in np.flatnonzero((results.excesses > 0).any(axis=0)):
            targets, zero = _signed_logs(results.excesses[:, place])
            limits.append(_Limit(process(f"limit {place}", targets)[0], zero))
        units = np.concatenate([results.units, pending])
        # A pending point counts as feasible once there is one, so that it is not suggested again.
        expected_feasible = np.full(len(pending), results.feasible.any())
        feasible = np.concatenate([results.feasible & results.final, expected_feasible])
        early = np.append(results.rows <= np.median(results.rows), np.zeros(len(pending), dtype=bool))
        expected = np.column_stack(means)
        acquisition = OutcomeAcquisition(
            embedding=self._embedding,
            units=units,
            goals=goals,
            limits=limits,
            means=expected,
            feasible=feasible,
            reference=np.array(reference),
            floor=_floor(expected[feasible], expected[feasible & early]),
            rng=rng,
        )
        return acquisition.against(np.ones(len(units), dtype=bool))

    def _bend(self, results: Results, place: int) -> float:
        """Return the loss above which losses are compressed: the worst on the front, or of the best quarter."""
        losses, known = results.losses, results.feasible
        if not known.any():
            known = np.ones(len(losses), dtype=bool)
        quantile = float(np.quantile(losses[known, place], _GOOD))
        if losses.shape[1] == 1:
            return quantile
        good = losses[known]
        return max(float(good[is_nondominated(good), place].max()), quantile)


def _floor(means: Floats, early: Floats) -> Floats:
    """Return the means below which growth does not count, shape (m,).

    They are as far below the lowest of all means as those are below the lowest of the early ones. At the ends of a
    front, a small gain in one objective counts with the whole range of the others. The process does not know that an
    objective has reached its lower end: without a floor, the search would look there again and again.
    """
    if not len(early):
        return np.full(means.shape[1], -np.inf)
    lowest = means.min(axis=0)
    return lowest - (early.min(axis=0) - lowest)


def scalarised(rng: np.random.Generator, losses: Floats) -> Floats:
    """Return one loss for each point, shape (n,), from losses (n, m): the largest of randomly weighted ones.

    Knowles, ParEGO, IEEE Transactions on Evolutionary Computation 10(1), 2006 (the augmented Chebyshev function).
    """
    good = losses[is_nondominated(losses)]
    low, high = good.min(axis=0), np.maximum(good.max(axis=0), np.quantile(losses, _GOOD, axis=0))
    ranges = np.where(high > low, high - low, 1.0)
    weighted = rng.dirichlet(np.ones(losses.shape[1])) * (losses - low) / ranges
    return weighted.max(axis=1) + _SUM_WEIGHT * weighted.sum(axis=1)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Scaled:
    """Losses in units of the distance from the best to the bend, compressed above it, of mean 0 and variance 1."""

    targets: Floats
    best: float
    unit: float
    mean: float
    spread: float

    @classmethod
    def of(cls, losses: Floats, bend: float) -> _Scaled:
        best = float(losses.min())
        unit = bend - best if bend > best else max(float(np.ptp(losses)), 1.0)
        raw = _compressed(_ratio(losses - best, unit))
        spread = float(raw.std()) or 1.0
        targets = (raw - raw.mean()) / spread
        return cls(targets=targets, best=best, unit=unit, mean=float(raw.mean()), spread=spread)

    def target(self, loss: float) -> float:
        """Return the target of a loss."""
        ratio = _ratio(np.array(loss - self.best), self.unit)
        return (float(_compressed(ratio)) - self.mean) / self.spread


def _ratio(values: Floats, unit: float) -> Floats:
    """Return values in a unit that may be tiny."""
    with np.errstate(over="ignore"):
        return np.minimum(values / unit, sys.float_info.max)


def _compressed(values: Floats) -> Floats:
    return np.where(values > 1, 1 + np.log(np.maximum(values, 1)), values)


def _signed_logs(excesses: Floats) -> tuple[Floats, float]:
    """Return targets for excesses over a limit, shape (n,), fine near the limit, and the target of the limit."""
    unit = float(np.median(np.abs(excesses[excesses != 0]))) if (excesses != 0).any() else 1.0
    raw = np.sign(excesses) * np.log1p(_ratio(np.abs(excesses), unit))
    spread = float(raw.std()) or 1.0
    return (raw - raw.mean()) / spread, -float(raw.mean()) / spread
