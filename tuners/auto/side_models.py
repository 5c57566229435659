"""What `Auto` learns beside its model: how unfinished trials end, where trials fail, and what earlier searches know.

Gelbart, Snoek and Adams, Bayesian Optimization with Unknown Constraints, UAI 2014 (failures: a process for each kind)
Feurer, Letham and Bakshy, Scalable Meta-Learning for Bayesian Optimization using Ranking-Weighted Gaussian Process
Ensembles, 2018 (earlier searches: a process for each, weighted by how well it ranks the new results)
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypedDict

import numpy as np

from ...numerics import Bools, Floats, Ints, Posterior, Prior, condition
from ...protocol import Parameters
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
_ALL_UP_TO = 32  # results of later stages are kept at this number times powers of 2^(1/4)
_MEMORY = 200  # latest changes into a stage that the median is taken of


@dataclass(frozen=True, slots=True, eq=False)
class KnownLosses:
    """Losses of rows, final or predicted, that can be compared; shape (k,) each."""

    rows: Ints
    losses: Floats

    def take(self, places: Ints) -> KnownLosses:
        """Return the entries at these places."""
        return KnownLosses(self.rows[places], self.losses[places])


class LearningCurves:
    """The intermediate losses of trials by row of the history: the last stage of each, and its best loss so far.

    The value of an early stage is never taken for a final one. The prediction is the best value of the trial so far
    plus, for each later stage and for the final result, the median change of the trials that got there. Medians of
    changes are used instead of a regression on early values: those are noisy, so a fitted slope is too flat and makes
    all stopped trials look alike.

    >>> curves = LearningCurves()
    >>> for row in range(5):
    ...     curves.note(row, 1, 4.0 + row)
    ...     curves.note(row, 2, 1.0 + row)
    >>> curves.note(5, 1, 10.0)
    >>> curves.comparable({}).losses.tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 7.0]
    """

    def __init__(self) -> None:
        self._latest: dict[int, tuple[int, float]] = {}
        # Changes of the best loss of the latest trials: into each stage, and to the final result.
        self._changes: dict[int, deque[float]] = {}
        self._to_final: deque[float] = deque(maxlen=_MEMORY)
        self._finished: set[int] = set()

    def __len__(self) -> int:
        return len(self._latest)

    def __contains__(self, row: int) -> bool:
        return row in self._latest

    @property
    def unfinished(self) -> int:
        """The number of trials that had no final result at the last call of `comparable`."""
        return len(self._latest) - len(self._finished)

    def note(self, row: int, stage: int, loss: float) -> None:
        """Record the loss of a row after so many steps; ignore one that is not finite. Costs O(1)."""
        before, best = self._latest.get(row, (0, math.inf))
        if stage <= before or not math.isfinite(loss):
            return
        if not _is_kept(stage):
            if before:
                self._latest[row] = before, min(best, loss)
            return
        if before:
            self._changes.setdefault(stage, deque(maxlen=_MEMORY)).append(min(loss - best, 0.0))
        self._latest[row] = stage, min(best, loss)

    def forget(self, row: int) -> None:
        """Leave out a trial that failed."""
        self._latest.pop(row, None)

    def comparable(self, finals: dict[int, float]) -> KnownLosses:
        """Return the final losses, `finals` by row, and the predicted losses of the other rows."""
        for row, loss in finals.items():
            if row in self._latest and row not in self._finished:
                self._finished.add(row)
                self._to_final.append(loss - self._latest[row][1])
        ahead = self._ahead()
        unknown = {
            row: loss + ahead[stage] for row, (stage, loss) in self._latest.items() if row not in finals
        }
        rows = np.array([*finals, *unknown], dtype=np.int64)
        return KnownLosses(rows, np.array([*finals.values(), *unknown.values()]))

    def _ahead(self) -> dict[int, float]:
        """Return the change from each stage to the end: the sum of those in between."""
        change = median(self._to_final) if self._to_final else 0.0
        ahead: dict[int, float] = {}
        for stage in sorted({*self._changes, *(stage for stage, _ in self._latest.values())}, reverse=True):
            ahead[stage] = change
            if stage in self._changes:
                change += median(self._changes[stage])
        return ahead


def _is_kept(stage: int) -> bool:
    if stage <= _ALL_UP_TO:
        return stage > 0
    octave = math.floor(4 * math.log2(stage / _ALL_UP_TO) + 1e-9)
    return stage == math.ceil(_ALL_UP_TO * 2 ** (octave / 4) - 1e-9)


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


class EarlierLoss(TypedDict):
    """An item of ImportData from an earlier search: its loss as `value`, and the number of the search."""

    parameter: Parameters
    value: float
    source: int


class EarlierSearches:
    """Models of the results of earlier searches, each standardised on its own."""

    def __init__(self, space: SearchSpace, embedding: Embedding, results: Iterable[EarlierLoss]) -> None:
        self._embedding = embedding
        sources: dict[int, list[tuple[Floats, float]]] = {}
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
