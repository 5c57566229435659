"""What speaks for or against a point beside its expected loss: where trials fail, and what earlier searches found.

Gelbart, Snoek and Adams, Bayesian Optimization with Unknown Constraints, UAI 2014 (failures: a process for each kind)
Feurer, Letham and Bakshy, Scalable Meta-Learning for Bayesian Optimization using Ranking-Weighted Gaussian Process
Ensembles, 2018 (earlier searches: a process for each, weighted by how well it ranks the new results)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...numerics import Bools, Floats, Posterior, Prior, condition
from ...search_space import SearchSpace
from ..base import Embedding, rank_agreement
from ..models import HyperParameters, dimension_factor, warped
from .model import Settings

_FAILED, _ENDED_WELL = 1.0, -1.0
_FEWEST = 5  # results of a source that a model needs
_BELIEVED = 0.5  # the agreement of a source before there are results, worth so many of them:
_BELIEVED_FOR = 4.0
_COMPARED = 200  # results at most that a source is compared with
_DURATION = 20.0  # results after which the models have their plain weight
_QUANTILE = 0.5  # losses above it are compressed


class FailureModel:
    """Learns how likely a trial is to fail at a point, from the trials that did and those that did not.

    Each kind of failure is compared with the trials that did not fail: where a script runs out of memory says nothing
    about where it diverges. Failures that do not depend on the parameters are noise to the process, so that it expects
    them everywhere alike, which changes no choice.
    """

    def __init__(self, embedding: Embedding, settings: Settings) -> None:
        self._embedding = embedding
        self._most = settings.largest_set
        self._parameters = HyperParameters(embedding.groups)
        self._posteriors: list[tuple[Posterior, float]] = []

    def learn(self, units: Floats, kinds: Sequence[str | None], suggested: int) -> Bools:
        """Take the points (n, d) of trials, oldest first, with their kinds of failure, None for those that did not.

        `suggested` counts suggestions. Return which failures the other trials confirm, shape (n,): those that are more
        likely than success where the process does not know them (leave-one-out, Rasmussen and Williams, eq. 5.12).
        """
        self._posteriors = []
        confirmed = np.zeros(len(kinds), dtype=bool)
        failed = np.array([kind is not None for kind in kinds], dtype=bool)
        if failed.all():
            return confirmed
        for kind in sorted({kind for kind in kinds if kind is not None}):
            chosen = np.flatnonzero(~failed | np.array([other == kind for other in kinds]))[-self._most :]
            posterior, middle, targets = self._posterior(kind, units[chosen], failed[chosen], suggested)
            self._posteriors.append((posterior, middle))
            without = targets - posterior.alpha / (posterior.whitener**2).sum(axis=0)
            confirmed[chosen] |= failed[chosen] & (without > middle)
        return confirmed

    def _posterior(
        self, kind: str, units: Floats, failed: Bools, suggested: int
    ) -> tuple[Posterior, float, Floats]:
        """Return the process of one kind of failure, and its value where success and failure are as likely."""
        features = self._embedding.features(units)
        raw = np.where(failed, _FAILED, _ENDED_WELL)
        spread = float(raw.std()) or 1.0
        targets = (raw - raw.mean()) / spread
        theta = self._parameters.fitted(kind, features, targets, _prior(units), suggested=suggested)
        posterior = condition(theta, features, targets, self._embedding.groups)
        return posterior, -float(raw.mean()) / spread, targets

    def log_success(self, units: Floats) -> Floats:
        """Return the logarithm of the probability that trials at points (m, d) do not fail, shape (m,)."""
        from scipy.special import log_ndtr

        features, total = self._embedding.features(units), np.zeros(len(units))
        for posterior, middle in self._posteriors:
            mean, deviation = posterior.predict(features)
            total += log_ndtr((middle - mean) / np.sqrt(deviation**2 + posterior.noise))
        return total


class EarlierSearches:
    """Models of the results of earlier searches, each standardised on its own."""

    def __init__(
        self, space: SearchSpace, embedding: Embedding, results: Iterable[Mapping[str, Any]]
    ) -> None:
        self._embedding = embedding
        sources: dict[Any, list[tuple[Floats, float]]] = {}
        for result in results:
            if not space.validate(result["parameter"]):
                measured = space.encode(result["parameter"]), float(result["value"])
                sources.setdefault(result["source"], []).append(measured)
        self._posteriors = [
            self._model(np.array([units for units, _ in rows]), np.array([loss for _, loss in rows]))
            for rows in sources.values()
            if len(rows) >= _FEWEST
        ]

    def _model(self, units: Floats, losses: Floats) -> Posterior:
        features, targets = self._embedding.features(units), warped(losses, _QUANTILE)[0]
        groups = self._embedding.groups
        theta = HyperParameters(groups).fitted("", features, targets, _prior(units), suggested=0)
        return condition(theta, features, targets, groups)

    def weights(self, units: Floats, losses: Floats) -> Floats:
        """Return how much each model counts after losses (n,), ascending, at units (n, d); 0 for a useless one.

        All fade as results arrive.
        """
        count = len(losses)
        some = np.unique(np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64))
        features = self._embedding.features(units[some])
        agreements = [rank_agreement(model.mean(features), losses[some]) for model in self._posteriors]
        trust = (_BELIEVED_FOR * _BELIEVED + np.array(agreements) * count) / (_BELIEVED_FOR + count)
        trust = np.maximum(trust, 0.0)
        return trust**2 / max(float(trust.sum()), 1e-9) * min(_DURATION / max(count, 1), 2.0)

    def bonus(self, weights: Floats, units: Floats) -> Floats:
        """Return what the models add to the logarithm of an acquisition function at points, shape (m,)."""
        features, total = self._embedding.features(units), np.zeros(len(units))
        for weight, posterior in zip(weights, self._posteriors, strict=True):
            if weight > 0:
                total -= weight * posterior.mean(features)
        return total


def _prior(units: Floats) -> Prior:
    """Return the prior of a process at points (n, d)."""
    return Prior(length_scale=0.5 * dimension_factor(units), noise=1e-2)
