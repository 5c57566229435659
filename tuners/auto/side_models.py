"""Where trials fail: a Gaussian process of success and failure for each kind of failure.

Gelbart, Snoek and Adams, Bayesian Optimization with Unknown Constraints, UAI 2014
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...numerics import Bools, Floats, Posterior, Prior, condition
from ..base import Embedding, active_dimension
from ..models import HyperParameters
from .settings import Settings

_FAILED, _ENDED_WELL = 1.0, -1.0


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
            chosen = np.flatnonzero(~failed | np.array([one == kind for one in kinds]))[-self._most :]
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
        prior = Prior(length_scale=0.5 * math.sqrt(max(active_dimension(units), 1.0) / 4), noise=1e-2)
        theta = self._parameters.fitted(kind, features, targets, prior, suggested=suggested)
        found = condition(theta, features, targets, self._embedding.groups)
        return found, -float(raw.mean()) / spread, targets

    def log_success(self, units: Floats) -> Floats:
        """Return the logarithm of the probability that trials at points (m, d) do not fail, shape (m,)."""
        from scipy.special import log_ndtr

        features, total = self._embedding.features(units), np.zeros(len(units))
        for posterior, middle in self._posteriors:
            mean, deviation = posterior.predict(features)
            total += log_ndtr((middle - mean) / np.sqrt(deviation**2 + posterior.noise))
        return total
