"""The base class of tuners with a model of the objective: first design, training data, search for a candidate.

Jones, Schonlau and Welch, Efficient Global Optimization of Expensive Black-Box Functions, 1998 (the method)
Ginsbourger et al., Kriging is well-suited to parallelize optimization, 2010 (the believer)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...numerics import Floats, Ints
from ..base import Embedding, LearningTuner, latin_hypercube, ready
from .acquisition import log_expected_improvement
from .fitting import warped
from .regions import Everywhere, Region, climb, neglected_branch

_CLIMBERS = 6
_BRANCH_SHARE = 0.15
_QUANTILE = 0.5  # losses above it are compressed
Score = Callable[[Floats], Floats]


class Model(Protocol):
    """A probabilistic model of the objective."""

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the warped loss at features of shape (m, f)."""
        ...


@dataclass(frozen=True, slots=True)
class Training:
    """Training data, best first: points (n, d), their features (n, f) and warped losses (n,)."""

    units: Floats
    features: Floats
    targets: Floats

    def with_imputed(self, units: Floats, features: Floats, mean: Floats) -> Training:
        """Return this with pending points whose results are assumed to be `mean`."""
        return Training(
            np.concatenate([self.units, units]),
            np.concatenate([self.features, features]),
            np.concatenate([self.targets, mean]),
        )


class SurrogateTuner(LearningTuner):
    """Fits a model to the results and suggests the candidate with the highest acquisition function.

    A subclass defines the fit (`_fit`), and may define another acquisition function (`_acquisition`). The first
    `startup` suggestions are a Latin hypercube. Running trials count with the mean of the model. A model learns from at
    most `limit` results: the best half, the newest quarter, and a random quarter.
    """

    def __init__(self, optimize_mode: str, seed: int | None, startup: int, limit: int) -> None:
        super().__init__(optimize_mode, seed)
        self._startup, self._limit = startup, limit
        self._everywhere, self._rounds = Everywhere(), 3

    @abstractmethod
    def _fit(self, training: Training) -> Model:
        """Return a model of the training data."""

    def _acquisition(self, model: Model, training: Training) -> Score:
        """Return the function of features, (m, f), to maximise: the expected improvement on the best result."""
        best = float(training.targets.min())
        return lambda features: log_expected_improvement(*model.predict(features), best)

    def _begin(self) -> None:
        self._embedding = Embedding.of(ready(self._explored).space)
        design = latin_hypercube(self._rng, self._startup, self._layout.dimension)
        self._design = iter(self._embedding.snap(design))

    def _proposals(self) -> Floats:
        """Return candidates, shape (m, d), best first: from the first design, then from the model."""
        history = self._history
        if history.count < self._startup or history.successes < min(3, self._startup):
            planned = next(self._design, None)
            return np.empty((0, self._layout.dimension)) if planned is None else planned[None]
        return self._modelled()

    def _modelled(self) -> Floats:
        """Return candidates by the acquisition function, the best first."""
        model, training = self._train()
        return self._climb(self._acquisition(model, training), training, self._region())

    def _train(self) -> tuple[Model, Training]:
        """Return the model and its training data: results, and expected results of running trials."""
        training = self._training()
        model = self._fit(training)
        running = self._history.units(self._running_rows())
        if not len(running):
            return model, training
        features = self._embedding.features(running)
        training = training.with_imputed(running, features, model.predict(features)[0])
        return self._fit(training), training

    def _climb(self, score: Score, training: Training, region: Region) -> Floats:
        """Return candidates of a region, shape (m, d), those with the highest score first."""
        best = training.units[np.argsort(training.targets, kind="stable")[:_CLIMBERS]]

        def of_units(units: Floats) -> Floats:
            return score(self._embedding.features(units))

        return climb(self._rng, self._embedding, region, of_units, best, self._rounds)

    def _region(self) -> Region:
        """Return where to search: sometimes in a branch with few results, so that none is abandoned."""
        if self._layout.children and self._rng.random() < _BRANCH_SHARE:
            units = self._history.units(np.arange(self._history.count))
            return neglected_branch(self._rng, self._layout, units) or self._everywhere
        return self._everywhere

    def _training(self) -> Training:
        rows = self._training_rows()
        units = self._history.units(rows)
        losses = np.array([self._history.loss(row) for row in rows.tolist()])
        return Training(units, self._embedding.features(units), warped(losses, _QUANTILE)[0])

    def _training_rows(self) -> Ints:
        ranked, limit = self._history.ranked, self._limit
        if len(ranked) <= limit:
            return ranked
        newest = np.sort(ranked)[-(limit // 4) :]
        some = self._rng.choice(ranked, limit // 4, replace=False)
        return np.unique(np.concatenate([ranked[: limit // 2], newest, some]))
