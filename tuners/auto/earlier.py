"""What earlier searches say about a point: a model of each, weighted by how well it ranks the new results.

Feurer, Letham and Bakshy, Scalable Meta-Learning for Bayesian Optimization using Ranking-Weighted Gaussian Process
Ensembles, 2018
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...numerics import Floats, Posterior, Prior, condition
from ...search_space import SearchSpace
from ..base import Embedding, active_dimension, rank_agreement
from ..models import HyperParameters, warped

_FEWEST = 5  # results of a source that a model needs
_BELIEVED = 0.5  # the agreement of a source before there are results, worth so many of them:
_BELIEVED_FOR = 4.0
_COMPARED = 200  # results at most that a source is compared with
_DURATION = 20.0  # results after which the models have their plain weight
_QUANTILE = 0.5  # losses above it are compressed


class EarlierSearches:
    """Models of the results of earlier searches, each standardised on its own."""

    def __init__(
        self, space: SearchSpace, embedding: Embedding, results: Iterable[Mapping[str, Any]]
    ) -> None:
        self._embedding = embedding
        sources: dict[Any, list[tuple[Floats, float]]] = {}
        for result in results:
            if not space.validate(result["parameter"]):
                found = space.encode(result["parameter"]), float(result["value"])
                sources.setdefault(result["source"], []).append(found)
        self._posteriors = [
            self._model(np.array([units for units, _ in rows]), np.array([loss for _, loss in rows]))
            for rows in sources.values()
            if len(rows) >= _FEWEST
        ]

    def _model(self, units: Floats, losses: Floats) -> Posterior:
        features, targets = self._embedding.features(units), warped(losses, _QUANTILE)[0]
        prior = Prior(length_scale=0.5 * math.sqrt(max(active_dimension(units), 1.0) / 4), noise=1e-2)
        groups = self._embedding.groups
        theta = HyperParameters(groups).fitted("", features, targets, prior, suggested=0)
        return condition(theta, features, targets, groups)

    def weights(self, units: Floats, losses: Floats) -> Floats:
        """Return how much each model counts after losses (n,), ascending, at units (n, d); 0 for a useless one.

        All fade as results arrive.
        """
        count = len(losses)
        some = np.unique(np.linspace(0, count - 1, min(count, _COMPARED)).astype(np.int64))
        features = self._embedding.features(units[some])
        agreements = [rank_agreement(one.mean(features), losses[some]) for one in self._posteriors]
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
