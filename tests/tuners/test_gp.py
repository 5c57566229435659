"""GP and Metis: they conform, and weigh candidates as configured."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pytest

from pitchpipe.numerics.gaussian_process import Posterior, Prior, condition, fit
from pitchpipe.testing import DIFFERENT, SPACES, TunerConformance
from pitchpipe.tuners import GPTuner, MetisTuner, Tuner
from pitchpipe.tuners.metis import _knowledge_gradient, _misfits
from pitchpipe.tuners.models.surrogate_tuner import Training

from .searches import LINE, started, suite


def quick_gp(seed: int, optimize_mode: str) -> Tuner:
    tuner = GPTuner(
        optimize_mode,
        cold_start_num=4,
        selection_num_warm_up=40,
        selection_num_starting_points=12,
        seed=seed,
    )
    tuner._rounds = 1
    return tuner


TestGP = suite(quick_gp, trials=9, many_results=25)


class TestMetis(TunerConformance):
    spaces: ClassVar[dict[str, Any]] = {name: SPACES[name] for name in DIFFERENT}  # GP takes the others
    trials = 9
    many_results = 25
    no_resampling = False

    def make(self, seed: int) -> Tuner:
        return self.make_directed(seed, "minimize")

    def make_directed(self, seed: int, optimize_mode: str) -> Tuner:
        tuner = MetisTuner(
            optimize_mode,
            no_resampling=self.no_resampling,
            cold_start_num=4,
            selection_num_starting_points=20,
            seed=seed,
        )
        tuner._rounds = 1
        return tuner

    @pytest.mark.parametrize("parallel", [1, 2])
    def test_no_point_is_suggested_twice(self, parallel: int) -> None:
        self.no_resampling = True
        super().test_no_point_is_suggested_twice(parallel)


def trained(tuner: Tuner, values: list[float]) -> Any:
    started(tuner, LINE)
    count = len(values)
    tuner.import_data([{"parameter": {"x": i / (count - 1)}, "value": v} for i, v in enumerate(values)])
    return tuner


def test_a_larger_kappa_looks_where_less_is_known() -> None:
    values = [
        0.5,
        0.2,
        0.05,
        0.0,
        0.05,
        0.2,
    ]  # nothing is known between 1 and 2 fifths as well as at the points
    greedy, curious = (
        trained(GPTuner("minimize", "ucb", kappa=kappa, cold_start_num=3, seed=0), values)
        for kappa in (0.0, 50.0)
    )
    near = abs(greedy.generate_parameters(0)["x"] - 0.6)
    assert near < 0.05
    model, training = curious._train()
    x = curious.generate_parameters(0)["x"]
    deviation = model.predict(curious._embedding.features(np.array([[x], [0.6]])))[1]
    assert deviation[0] > 1.2 * deviation[1]
    assert len(training.targets) == 6


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_every_smoothness_searches(nu: float) -> None:
    tuner = trained(
        GPTuner("minimize", nu=nu, cold_start_num=3, seed=0), [(i / 8 - 0.7) ** 2 for i in range(9)]
    )
    assert abs(tuner.generate_parameters(0)["x"] - 0.7) < 0.15


def posterior(features: np.ndarray, targets: np.ndarray) -> Posterior:
    groups = np.zeros(features.shape[1], dtype=np.int64)
    return condition(fit(features, targets, groups, Prior()), features, targets, groups)


def test_the_covariance_agrees_with_the_deviations() -> None:
    rng = np.random.default_rng(0)
    model = posterior(rng.random((12, 2)), rng.normal(size=12))
    points = rng.random((5, 2))
    covariance = model.covariance(points, points)
    assert np.sqrt(np.diag(covariance)) == pytest.approx(model.predict(points)[1], rel=1e-4)
    assert covariance == pytest.approx(covariance.T)


def test_a_misfit_is_found() -> None:
    features = np.linspace(0, 1, 15)[:, None]
    targets = np.sin(3 * features[:, 0])
    targets[6] += 3.0
    groups = np.zeros(1, dtype=np.int64)
    theta = np.array([math.log(0.3), 0.0, -30.0, math.log(1e-3)])
    model = condition(theta, features, targets, groups)
    found = _misfits(model, Training(features, features, targets))
    assert found[0] == pytest.approx(features[6])


def test_the_knowledge_gradient_is_that_of_simulated_results() -> None:
    rng = np.random.default_rng(1)
    features, targets = rng.random((8, 1)), rng.normal(size=8)
    groups = np.zeros(1, dtype=np.int64)
    theta = np.array([math.log(0.3), 0.0, -30.0, math.log(0.05)])
    model = condition(theta, features, targets, groups)
    candidate = np.array([[0.45]])
    points = np.concatenate([features, candidate])
    mean, deviation = model.predict(candidate)
    results = mean + np.sqrt(deviation**2 + model.noise) * rng.standard_normal(3000)
    lowest = [
        condition(theta, points, np.append(targets, result), groups).mean(points).min() for result in results
    ]
    expected = model.mean(points).min() - np.mean(lowest)
    assert _knowledge_gradient(model, candidate, features)[0] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(("no_resampling", "again"), [(False, True), (True, False)])
def test_metis_measures_a_misfit_again_if_it_may(no_resampling: bool, again: bool) -> None:
    tuner = MetisTuner("minimize", no_resampling=no_resampling, exploration_probability=1.0, seed=0)
    values = [float((i / 24 - 0.5) ** 2) for i in range(25)]
    values[12] = 0.3  # the best point looks bad
    trained(tuner, values)
    points = [tuner.generate_parameters(i)["x"] for i in range(6)]
    assert sum(abs(x - 0.5) < 1e-12 for x in points) == again  # once, not time and again
