"""GP: Bayesian optimisation with a Gaussian process, and a choice of what a candidate is worth.

Snoek, Larochelle and Adams, Practical Bayesian Optimization of Machine Learning Algorithms, NIPS 2012
Srinivas et al., Gaussian Process Optimization in the Bandit Setting, ICML 2010 (the confidence bound)
Kushner, Journal of Basic Engineering 86(1), 1964 (the probability of improvement)
"""

from __future__ import annotations

import sys
from typing import Any

from ..numerics import SMOOTHNESSES, Floats, Posterior, Prior, condition
from ..plugins import integer, number, one_of, positive
from .models import (
    Everywhere,
    HyperParameters,
    Model,
    Score,
    SurrogateTuner,
    Training,
    dimension_factor,
    log_expected_improvement,
)

_LARGEST_SET = 300
_LENGTH_SCALE = 0.5
_FINITE = sys.float_info.max


class GaussianProcessTuner(SurrogateTuner):
    """What tuners with a Gaussian process share: the fit, and its hyper-parameters kept between suggestions."""

    def __init__(
        self, optimize_mode: str, seed: int | None, startup: int, nu: float = 2.5, noise: float = 1e-3
    ) -> None:
        super().__init__(optimize_mode, seed, startup, _LARGEST_SET)
        self._nu, self._noise = nu, noise

    def _begin(self) -> None:
        super()._begin()
        self._parameters = HyperParameters(self._embedding.groups)

    def _fit(self, training: Training) -> Posterior:
        units, features, targets = training.units, training.features, training.targets
        prior = Prior(length_scale=_LENGTH_SCALE * dimension_factor(units), noise=self._noise, nu=self._nu)
        count = self._history.finished
        every = 1 if count <= 40 else 2 if count < 100 else 5
        theta = self._parameters.fitted("", features, targets, prior, suggested=count, interval=every)
        return condition(theta, features, targets, self._embedding.groups, nu=self._nu)


class GPTuner(GaussianProcessTuner):
    """Suggests the candidate with the highest utility under a Gaussian process.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. `utility` is `ei`
    (expected improvement), `poi` (its probability), both over the best result less `xi`, or `ucb` (the mean less
    `kappa` standard deviations). `nu` is the smoothness of the Matern kernel (0.5, 1.5, 2.5 or infinity), `alpha`
    the noise variance expected beforehand; both noise and length-scales are fitted. `cold_start_num` suggestions fill
    the space first; then `selection_num_warm_up` random candidates and `selection_num_starting_points` near the
    best results are compared each time, and the search climbs from the best of them. Values are in units of standard
    deviations of the transformed results. Raises ValueError for other arguments, NoMoreTrialError when a finite space
    is exhausted.

    >>> tuner = GPTuner("minimize", seed=1)
    >>> tuner.update_search_space({"x": {"_type": "uniform", "_value": [-5, 5]}})
    >>> for i in range(20):
    ...     point = tuner.generate_parameters(i)
    ...     tuner.receive_trial_result(i, point, (point["x"] - 2) ** 2)
    >>> abs(tuner.generate_parameters(20)["x"] - 2) < 1
    True
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        utility: str = "ei",
        kappa: float = 2.0,
        xi: float = 0.0,
        nu: float = 2.5,
        alpha: float = 1e-3,
        cold_start_num: int = 10,
        selection_num_warm_up: int = 400,
        selection_num_starting_points: int = 250,
        seed: int | None = None,
    ) -> None:
        smoothness = float(one_of("nu", _number(nu), SMOOTHNESSES))
        noise = positive("alpha", alpha)
        super().__init__(optimize_mode, seed, integer("cold_start_num", cold_start_num, 1), smoothness, noise)
        self._utility = str(one_of("utility", utility, ("ei", "ucb", "poi")))
        self._kappa, self._xi = number("kappa", kappa, 0, _FINITE), number("xi", xi, 0, _FINITE)
        self._everywhere = Everywhere(
            random=integer("selection_num_warm_up", selection_num_warm_up, 1),
            around=integer("selection_num_starting_points", selection_num_starting_points, 1),
        )

    def _acquisition(self, model: Model, training: Training) -> Score:
        # The lowest mean, not the lowest result, which may be noise.
        best = float(model.predict(training.features)[0].min()) - self._xi

        def worth(features: Floats) -> Floats:
            mean, deviation = model.predict(features)
            if self._utility == "ucb":
                return self._kappa * deviation - mean
            if self._utility == "poi":
                return (best - mean) / deviation  # its probability grows with it
            return log_expected_improvement(mean, deviation, best)

        return worth


def _number(value: Any) -> Any:
    """Return a number as a float; a config may have an integer."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
