"""BOHB: Hyperband whose new configurations come from a model of the results on the largest budget that has enough.

Falkner, Klein and Hutter, BOHB: Robust and Efficient Hyperparameter Optimization at Scale, ICML 2018.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import Floats
from ..plugins import integer, number, positive
from ..protocol import Parameters
from ..search_space import SearchSpace
from .base import Layout, Member, measurements, ready
from .hyperband import HyperbandTuner, halvings
from .models import Mixture, by_ratio

_FLIP = 0.3  # how often a kernel leaves the option of a choice, with one observation; less often with more
_LARGEST_SET = 500  # points in the density of the bad; beyond it, every n-th by rank
_PRIOR_WEIGHT = 1e-3  # of the sampling distribution, in observations
_CANDIDATES_TRIED = 16  # the best candidates, to find a new one that meets the constraints


@dataclass(slots=True, kw_only=True)
class _Model:
    """The settings of the densities: Falkner et al. 2018, section 3.2."""

    min_points: int | None
    good_share: float
    samples: int
    widening: float
    narrowest: float

    def least(self, dimension: int) -> int:
        """Return N_min: how many points a density needs; by default one more than there are parameters."""
        return dimension + 1 if self.min_points is None else self.min_points

    def split(self, count: int, dimension: int) -> tuple[int, int] | None:
        """Return how many of `count` are good and how many are bad (eq. 3), None when there are too few."""
        least = self.least(dimension)
        if count < least + 2:
            return None
        good = math.floor(self.good_share * count)
        return max(least, good), max(least, count - good)


class BOHBTuner(HyperbandTuner):
    """Hyperband with a model: new configurations are drawn where good results are dense and bad ones are rare.

    Budgets go from `min_budget` to `max_budget` intermediate results by factors of `eta`. On the largest budget
    with enough results, the best `top_n_percent` and the others (each `min_points_in_model` at least, by default
    one more than there are parameters) are modelled by kernel densities; of `num_samples` draws from the good one,
    widened by `bandwidth_factor`, that with the highest ratio is taken. A share `random_fraction` of the
    configurations is drawn at random. Bandwidths are at least `min_bandwidth` of the range. Raises ValueError for
    other arguments.

    >>> tuner = BOHBTuner(max_budget=9, seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})
    >>> [tuner.generate_parameters(i).budget for i in range(16)]
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 9, 9]
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        min_budget: int = 1,
        max_budget: int = 3,
        eta: int = 3,
        min_points_in_model: int | None = None,
        top_n_percent: float = 15,
        num_samples: int = 64,
        random_fraction: float = 1 / 3,
        bandwidth_factor: float = 3,
        min_bandwidth: float = 1e-3,
        config_space: str | None = None,
        seed: int | None = None,
    ) -> None:
        if config_space is not None:
            raise ValueError(f"config_space is not read; write {config_space!r} as a search_space")
        least = integer("min_budget", min_budget, 1)
        most = integer("max_budget", max_budget, least)
        super().__init__(optimize_mode, most, eta, "parallelism", seed)
        self._s_max = halvings(most / least, self._eta)
        least_points = min_points_in_model
        self._model = _Model(
            min_points=None if least_points is None else integer("min_points_in_model", least_points, 1),
            good_share=number("top_n_percent", top_n_percent, 0, 99.0) / 100,
            samples=integer("num_samples", num_samples, 1),
            widening=positive("bandwidth_factor", bandwidth_factor),
            narrowest=positive("min_bandwidth", min_bandwidth),
        )
        self._random_fraction = number("random_fraction", random_fraction, 0, 1.0)
        # By budget, what was measured there, ascending: loss, order of arrival, parameters, and their vector.
        self._results: dict[int, list[tuple[float, int, Parameters, Floats]]] = {}
        self._arrivals = 0

    def update_search_space(self, search_space: Any) -> None:
        """Take a search space; running members continue, and results that are points of it are kept."""
        super().update_search_space(search_space)
        space = ready(self._explored).space
        self._layout = Layout.of(space)
        for budget, results in self._results.items():
            kept = [result[:3] for result in results if not space.validate(result[2])]
            self._results[budget] = [(*result, space.encode(result[2])) for result in kept]

    def import_data(self, data: list[Any]) -> None:
        """Learn from results measured elsewhere as from those of full runs."""
        super().import_data(data)
        for parameters, value in measurements(ready(self._explored), data):
            if value is not None:
                self._note(self._R, self._loss(value), parameters)

    def _arrived(self, member: Member) -> None:
        if not ready(self._explored).space.validate(member.parameters):
            self._note(member.target, member.loss, member.parameters)
        super()._arrived(member)

    def _note(self, budget: int, loss: float, parameters: Parameters) -> None:
        self._arrivals += 1
        result = (loss, self._arrivals, parameters, ready(self._explored).space.encode(parameters))
        insort(self._results.setdefault(budget, []), result)

    def _sample(self) -> Parameters:
        """Return a configuration of the model if there is one yet, or a random one."""
        explored = ready(self._explored)
        modelled = self._rng.random() >= self._random_fraction
        for parameters in self._modelled(explored.space) if modelled else ():
            if not explored.space.violations(parameters) and explored.add(parameters):
                return parameters
        return super()._sample()

    def _modelled(self, space: SearchSpace) -> Iterator[Parameters]:
        """Yield the best candidates of the model on the largest budget that has one."""
        dimension = len(space.parameters)
        for budget in sorted(self._results, reverse=True):
            results = self._results[budget]
            counts = self._model.split(len(results), dimension)
            if counts is not None and results[0][0] < math.inf:
                units = np.array([result[3] for result in results])
                bad = units[-counts[1] :][:: -(-counts[1] // _LARGEST_SET)]
                for vector in self._candidates(units[: counts[0]], bad)[:_CANDIDATES_TRIED]:
                    yield space.decode(vector)
                return

    def _candidates(self, good: Floats, bad: Floats) -> Floats:
        """Draw from the widened density of the good, and order by l / g (Falkner et al. 2018, algorithm 2)."""
        units = self._density(good, self._model.widening).sample(self._rng, self._model.samples)
        return by_ratio(self._density(good, 1.0), self._density(bad, 1.0), units)

    def _density(self, units: Floats, widening: float) -> Mixture:
        """Return the kernel density of points, with a little of the sampling distribution for places without points."""
        layout, n = self._layout, len(units)
        bandwidth = np.maximum(
            _normal_reference(units[:, layout.numeric], len(layout.numeric)), layout.cells / 2
        )
        bandwidth = np.maximum(bandwidth, self._model.narrowest) * widening
        flip = min(0.9, _FLIP * widening**0.5 * n ** (-2 / (4 + layout.dimension)))
        return Mixture.of(layout, units, bandwidth, flip=flip, prior_weight=_PRIOR_WEIGHT)


def _normal_reference(units: Floats, dimension: int) -> Floats:
    """Return 1.06 sigma n^(-1 / (4 + d)) for each column, (n, p), ignoring NaN; 1 for a column of NaN only."""
    known = ~np.isnan(units)
    n = known.sum(axis=0)
    filled = np.where(known, units, 0.0)
    mean = filled.sum(axis=0) / np.maximum(n, 1)
    variance = (np.where(known, units - mean, 0.0) ** 2).sum(axis=0) / np.maximum(n, 1)
    return np.where(n > 0, 1.06 * np.sqrt(variance) * np.maximum(n, 1) ** (-1 / (4 + dimension)), 1.0)
