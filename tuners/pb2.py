"""PB2: population-based training; a bandit model of past improvements chooses the new parameters.

Parker-Holder, Nguyen and Roberts, Provably Efficient Online Hyperparameter Optimization with Population-Based
Bandits, NeurIPS 2020 (the method)
Bogunovic, Scarlett and Cevher, Time-Varying Gaussian Process Bandit Optimization, AISTATS 2016 (the kernel)
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..numerics import Floats, matern, squared_distances
from ..protocol import Parameters
from ..search_space import SearchSpace
from .base import Embedding, Member, ready
from .pbt import Legacy, PBTTuner

_LARGEST_SET = 100  # latest measurements that the model is fitted to
_CANDIDATES = 500
_HUGE = 1e150  # squares stay finite
# The marginal likelihood chooses among these: length-scale, forgetting per generation, share of noise.
_GRID = tuple(itertools.product((0.2, 0.5, 1.2), (0.0, 0.1, 0.4), (0.02, 0.3)))


class PB2Tuner(PBTTuner):
    """Population-based training that models how much parameters improved their members; old results count less.

    As in PBT, `population_size` members train in generations of `interval` intermediate results, and the worst
    `fraction` continue from checkpoints of the best, with the parameters whose next improvement has the highest upper
    confidence bound. With `generations` None they train until the scripts end. Raises ValueError for
    other arguments.

    >>> tuner = PB2Tuner(population_size=2, interval=5, seed=1)
    >>> tuner.update_search_space({"lr": {"_type": "loguniform", "_value": [0.001, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(2)]
    [5, 5]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        population_size: int = 10,
        fraction: float = 0.2,
        interval: int = 10,
        generations: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            optimize_mode,
            population_size=population_size,
            fraction=fraction,
            interval=interval,
            generations=generations,
            seed=seed,
        )
        # By place in the population: the loss that the generation began with.
        self._before: dict[int, float] = {}
        # Parameters, generation, and the improvement in it, compared with the others.
        self._measured: list[tuple[Parameters, int, float]] = []
        self._surrogate: tuple[Embedding, _TimeVarying] | None = None  # of this generation

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; measurements that are not points of it are left out."""
        super().update_search_space(search_space)
        self._surrogate = None

    def _note_generation(self) -> None:
        """Record how much each member improved, in standard deviations of the generation (section 3.1)."""
        self._surrogate = None
        placed = [(i, member) for i, member in enumerate(self._members) if math.isfinite(member.loss)]
        gains = np.array([self._before.get(i, 0.0) - member.loss for i, member in placed]).clip(-_HUGE, _HUGE)
        spread = float(gains.std()) if len(gains) else 0.0
        if 0.0 < spread < math.inf:
            scaled = (gains - gains.mean()) / spread
            self._measured += [
                (member.parameters, self._generation, float(gain))
                for (_, member), gain in zip(placed, scaled, strict=True)
            ]
            self._measured = self._measured[-_LARGEST_SET:]
        self._before = {i: member.loss for i, member in placed}

    def _take_over(self, member: Member, legacy: Legacy) -> None:
        super()._take_over(member, legacy)
        if legacy.model is not None:
            self._before[self._members.index(member)] = legacy.model.loss

    def _explore(self, model: Member) -> Parameters:
        """Return the parameters with the highest upper confidence bound (eq. 5); earlier choices count as measured."""
        space = ready(self._explored).space
        if self._surrogate is None:
            self._surrogate = self._learned(space)
        if self._surrogate is None:
            return super()._explore(model)
        embedding, surrogate = self._surrogate
        now = float(self._generation)
        units = embedding.snap(self._rng.random((_CANDIDATES, len(space.parameters))))
        mean, deviation = surrogate.predict(embedding.features(units), now)
        # Kandasamy, Schneider and Poczos 2015, section 4.3: beta_t = 0.2 d log(2 t).
        beta = 0.2 * len(space.parameters) * math.log(2.0 * now)
        for place in np.argsort(-(mean + math.sqrt(beta) * deviation), kind="stable"):
            parameters = space.decode(units[place])
            if not space.violations(parameters):
                surrogate.believe(embedding.features(units[place : place + 1]), now)
                return parameters
        return super()._explore(model)

    def _learned(self, space: SearchSpace) -> tuple[Embedding, _TimeVarying] | None:
        """Return the model of the measurements in the space, or None without any."""
        known = [each for each in self._measured if not space.validate(each[0])]
        if not known:
            return None
        embedding = Embedding.of(space)
        features = embedding.features(np.array([space.encode(each[0]) for each in known]))
        times, gains = np.array([[float(each[1]), each[2]] for each in known]).T
        return embedding, _TimeVarying(features, times, gains)


class _TimeVarying:
    """Gaussian-process regression of a function that changes with time: k = matern(x, x') (1 - omega)^(|t - t'| / 2).

    Bogunovic et al. 2016, eq. 4. `features` (n, f), `times` (n,), `targets` (n,) of about unit variance. It is not the
    process of `numerics/`, whose kernel knows no times; the evidence chooses among a few settings of both.
    """

    def __init__(self, features: Floats, times: Floats, targets: Floats) -> None:
        self._features, self._times, self._targets = features, times, targets
        squared, lags = squared_distances(features, features), np.abs(times[:, None] - times)
        scale = math.sqrt(max(features.shape[1], 1) / 4)
        evidence = []
        for length, omega, noise in _GRID:
            settings = (length * scale, omega, noise)
            evidence.append((self._log_likelihood(_kernel(squared, lags, settings), noise), settings))
        self._settings = max(evidence)[1]
        self._condition()

    def _log_likelihood(self, covariance: Floats, noise: float) -> float:
        """Return the log marginal likelihood up to a constant (Rasmussen and Williams 2006, eq. 2.30)."""
        factor = _cholesky(covariance, noise)
        white = _solve(factor, self._targets)
        return -0.5 * float(white @ white) - float(np.log(np.diag(factor)).sum())

    def _condition(self) -> None:
        lags = np.abs(self._times[:, None] - self._times)
        covariance = _kernel(squared_distances(self._features, self._features), lags, self._settings)
        self._factor = _cholesky(covariance, self._settings[2])
        self._white = _solve(self._factor, self._targets)

    def predict(self, features: Floats, time: float) -> tuple[Floats, Floats]:
        """Return mean and standard deviation at features (m, f) at a time."""
        lags = np.abs(time - self._times)[None]
        covariance = _kernel(squared_distances(features, self._features), lags, self._settings)
        white = _solve(self._factor, covariance.T)
        return white.T @ self._white, np.sqrt(np.maximum(1.0 - (white * white).sum(axis=0), 1e-12))

    def believe(self, features: Floats, time: float) -> None:
        """Take the mean as the result of these points: the next choice goes elsewhere (section 3.2)."""
        mean, _ = self.predict(features, time)
        self._features = np.concatenate([self._features, features])
        self._times = np.append(self._times, np.full(len(features), time))
        self._targets = np.append(self._targets, mean)
        self._condition()


def _kernel(squared: Floats, lags: Floats, settings: tuple[float, float, float]) -> Floats:
    length, omega, _ = settings
    return matern(squared / length**2) * (1.0 - omega) ** (lags / 2)


def _cholesky(covariance: Floats, noise: float) -> Floats:
    return np.asarray(np.linalg.cholesky(covariance + noise * np.eye(len(covariance))), dtype=np.float64)


def _solve(factor: Floats, right: Floats) -> Floats:
    from scipy.linalg import solve_triangular

    return solve_triangular(factor, right, lower=True, check_finite=False)
