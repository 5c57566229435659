"""How much better the best result would become if the search continued until nothing was left to find.

A Gaussian process of the results, and one of each limited metric, is drawn many times at candidates. In each draw the
gain is the distance from the best known point down to the lowest candidate that keeps the limits. Their mean is the
expected regret of the best point, which Makarova et al. bound to end a search, and Wilson samples as here.

Makarova et al., Automatic Termination for Hyperparameter Optimization, AutoML 2022
Wilson, Stopping Bayesian Optimization with Probabilistic Regret Bounds, NeurIPS 2024
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...numerics import Bools, Floats, Ints, Posterior, Prior, condition, fit
from ..base import Embedding
from .acquisition import log_expected_improvement
from .fitting import dimension_factor, warped
from .regions import Everywhere, climb

_MOST = 120  # results that the models learn from
_QUANTILE = 0.5  # losses above it are compressed
_EVERYWHERE = Everywhere(random=200, around=200)
_CLIMBED, _LEADERS, _ROUNDS, _DRAWS = 150, 6, 3, 200
_ITERATIONS = 40
_JITTER = 1e-8


@dataclass(frozen=True, slots=True)
class Outlook:
    """The expected further gain, and the standard deviation of the noise of a result, in units of the objective."""

    gain: float
    noise: float


def expected_gain(embedding: Embedding, units: Floats, losses: Floats, excesses: Floats) -> Outlook:
    """Return the outlook after results at `units`, shape (n, d), in order of arrival: losses (n,), excesses (n, c).

    An excess above 0 violates a limit; at least one result must keep all of them. Equal arguments have equal results.
    """
    rows = _representative(losses, excesses)
    units, losses, excesses = units[rows], losses[rows], excesses[rows]
    feasible = np.flatnonzero(np.all(excesses <= 0, axis=1))
    if np.ptp(losses) == 0:
        return Outlook(0.0, 0.0)
    rng = np.random.default_rng(len(losses))
    features, targets = embedding.features(units), warped(losses, _QUANTILE)[0]
    goal = _model(embedding, units, features, targets)
    means = goal.mean(features)
    leader = feasible[means[feasible].argmin()]
    best = units[feasible[means[feasible].argsort(kind="stable")[:_LEADERS]]]

    def score(points: Floats) -> Floats:
        return log_expected_improvement(*goal.predict(embedding.features(points)), float(means[leader]))

    climbed = climb(rng, embedding, _EVERYWHERE, score, best, _ROUNDS)
    anywhere = _EVERYWHERE.start(rng, embedding, best)[: _EVERYWHERE.random]
    points = np.concatenate([units[[leader]], climbed[:_CLIMBED], anywhere])
    places = embedding.features(points)
    drawn = _draws(rng, goal, places)
    lowest = drawn.copy()
    for column in excesses.T:
        lowest[_violated(rng, embedding, units, column, places)] = np.inf
    # The best known point keeps the limits, whatever the models say.
    gain = float((drawn[:, 0] - np.minimum(drawn[:, 0], lowest.min(axis=1))).mean())
    unit = _unit(losses, targets)
    return Outlook(gain * unit, math.sqrt(goal.noise) * unit)


def _representative(losses: Floats, excesses: Floats) -> Ints:
    """Return the rows to learn from: of too many, the best half, the newest quarter, and others evenly over time."""
    count = len(losses)
    if count <= _MOST:
        return np.arange(count)
    over = np.maximum(excesses, 0.0).sum(axis=1)
    best = np.lexsort((losses, over))[: _MOST // 2]
    newest = np.arange(count - _MOST // 4, count)
    rest = np.setdiff1d(np.arange(count), np.concatenate([best, newest]))
    more = rest[np.linspace(0, len(rest) - 1, _MOST // 4).astype(np.int64)]
    return np.unique(np.concatenate([best, newest, more]))


def _model(embedding: Embedding, units: Floats, features: Floats, targets: Floats) -> Posterior:
    prior = Prior(length_scale=0.5 * dimension_factor(units))
    theta = fit(features, targets, embedding.groups, prior, iterations=_ITERATIONS)
    return condition(theta, features, targets, embedding.groups)


def _draws(rng: np.random.Generator, model: Posterior, features: Floats) -> Floats:
    """Return draws of a model at features (m, f), shape (draws, m)."""
    covariance = model.covariance(features, features)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return model.mean(features) + rng.standard_normal((_DRAWS, len(features))) @ root.T


def _violated(
    rng: np.random.Generator, embedding: Embedding, units: Floats, excesses: Floats, features: Floats
) -> Bools:
    """Return where draws of an excess, known at `units`, are above 0 at features (m, f); shape (draws, m)."""
    if np.ptp(excesses) == 0:
        return np.zeros((_DRAWS, len(features)), dtype=bool)
    model = _model(embedding, units, embedding.features(units), warped(excesses, None)[0])
    return _draws(rng, model, features) > -excesses.mean() / excesses.std()


def _unit(losses: Floats, targets: Floats) -> float:
    """Return how much of the objective is a step of 1 of the targets, among the good losses."""
    first, second = np.unique(losses)[:2]
    step = targets[losses == second][0] - targets[losses == first][0]
    return float((second - first) / step)
