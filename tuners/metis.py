"""Metis: several kinds of candidates under a Gaussian process; the most informative one is suggested.

Li et al., Metis: Robustly Optimizing Tail Latencies of Cloud Systems, USENIX ATC 2018 (the kinds of candidates)
Frazier, Powell and Dayanik, The Knowledge-Gradient Policy for Correlated Normal Beliefs, 2009 (what is learned)
"""

from __future__ import annotations

import math

import numpy as np

from ..numerics import Floats, Posterior
from ..plugins import integer, number, one_of
from .base import ready
from .gp import GaussianProcessTuner
from .models import Everywhere, Mixture, Model, Score, Training, by_ratio

_GOOD = 0.25  # share of the results that count as good
_BANDWIDTH, _FLIP = 0.1, 0.2
_DRAWS = 64
_REFERENCES = 30  # best known points whose means the next result may change
_SUSPICIOUS = 3.0  # standard deviations between a result and what the others predict


class MetisTuner(GaussianProcessTuner):
    """Weighs exploitation, exploration, a mixture model and re-sampling by the information in the next result.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. The first `cold_start_num`
    suggestions fill the space. Then, with `exploration_probability`, it compares three candidates: the lowest mean,
    the least known point, and the likeliest good one. Otherwise, and with `no_candidates`, it takes the lowest mean.
    Each is chosen from `selection_num_starting_points` random points. Unless `no_resampling`, a result that does
    not fit the others is measured once more (where a continuous parameter is active: other points are never repeated).
    Raises ValueError for other arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = MetisTuner("minimize", seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(15):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(15)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        no_resampling: bool = True,
        no_candidates: bool = False,
        selection_num_starting_points: int = 200,
        cold_start_num: int = 10,
        exploration_probability: float = 0.9,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed, integer("cold_start_num", cold_start_num, 1))
        self._resampling = not one_of("no_resampling", no_resampling, (True, False))
        self._exploiting = bool(one_of("no_candidates", no_candidates, (True, False)))
        starts = integer("selection_num_starting_points", selection_num_starting_points, 1)
        self._everywhere = Everywhere(random=starts, around=max(starts // 2, 12))
        self._exploration = number("exploration_probability", exploration_probability, 0, 1)

    def _acquisition(self, model: Model, training: Training) -> Score:
        return lambda features: -model.predict(features)[0]

    def _begin(self) -> None:
        super()._begin()
        self._measured_again: set[bytes] = set()

    def _modelled(self) -> Floats:
        model, training = self._train()
        assert isinstance(model, Posterior)
        suspicious = self._take_misfit_to_repeat(model, training) if self._resampling else []
        if suspicious:
            return np.array(suspicious)
        lowest = self._climb(self._acquisition(model, training), training, self._everywhere)
        if self._exploiting or self._rng.random() >= self._exploration:
            return lowest
        unknown = self._climb(lambda features: model.predict(features)[1], training, self._region())
        candidates = np.concatenate([lowest[:1], unknown[:1], self._draw_likely(training)[:1]])
        references = training.features[np.argsort(model.mean(training.features), kind="stable")[:_REFERENCES]]
        gains = _knowledge_gradient(model, self._embedding.features(candidates), references)
        return np.concatenate([candidates[np.argsort(-gains, kind="stable")], lowest[1:]])

    def _take_misfit_to_repeat(self, model: Posterior, training: Training) -> list[Floats]:
        """Return the worst misfit that can be repeated and was not yet, or nothing."""
        for units in _misfits(model, training):
            if units.tobytes() not in self._measured_again and self._is_continuous(units):
                self._measured_again.add(units.tobytes())
                explored = ready(self._explored)
                explored.forget(explored.space.decode(units))
                return [units]
        return []

    def _is_continuous(self, units: Floats) -> bool:
        """Return whether a continuous parameter is active in a point."""
        active = np.flatnonzero(~np.isnan(units))
        return any(self._embedding.edges[i] is None for i in np.intersect1d(active, self._layout.numeric))

    def _draw_likely(self, training: Training) -> Floats:
        """Return draws from a density of the good results, those first that are rare among the others; (m, d)."""
        order = np.argsort(training.targets, kind="stable")
        count = max(math.ceil(_GOOD * len(order)), 1)
        good, others = (self._density(training.units[rows]) for rows in (order[:count], order[count:]))
        units = self._embedding.snap(good.sample(self._rng, _DRAWS))
        return by_ratio(good, others, units)

    def _density(self, units: Floats) -> Mixture:
        bandwidth = np.maximum(np.full(len(self._layout.numeric), _BANDWIDTH), self._layout.cells / 2)
        return Mixture.of(self._layout, units, bandwidth, flip=_FLIP, prior_weight=1.0)


def _misfits(model: Posterior, training: Training) -> Floats:
    """Return the points whose results are far from what the others predict, the worst first; shape (m, d).

    Rasmussen and Williams 2006, eq. 5.12: the prediction at a point from all the others, without a fit for each point.
    """
    precision = np.einsum("ij,ij->j", model.whitener, model.whitener)
    distance = np.abs(model.alpha) / np.sqrt(precision)
    order = np.argsort(-distance, kind="stable")
    return training.units[order[distance[order] > _SUSPICIOUS]]


def _knowledge_gradient(model: Posterior, candidates: Floats, references: Floats) -> Floats:
    """Return by how much a result at each candidate is expected to lower the lowest mean; features, shape (m,).

    Frazier et al. 2009, eq. 4, over the references and the candidates, the expectation by Gauss-Hermite quadrature.
    """
    points = np.concatenate([references, candidates])
    means = model.mean(points)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    variance = np.maximum(np.diag(model.covariance(candidates, candidates)), 1e-12) + model.noise
    change = model.covariance(points, candidates) / np.sqrt(variance)
    lowest = (means[:, None, None] + change[:, :, None] * nodes).min(axis=0)
    return means.min() - lowest @ weights / weights.sum()
