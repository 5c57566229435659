"""The Gaussian process: its kernels, its gradient, its posterior, and the quadratic trend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pitchpipe.numerics import gaussian_process
from pitchpipe.numerics.gaussian_process import (
    SMOOTHNESSES,
    Prior,
    condition,
    correlation_and_slope,
    fit,
    matern,
)
from pitchpipe.tuners.models.acquisition import log_expected_improvement
from pitchpipe.tuners.models.fitting import warped

from ..lazy import Lazy

special = Lazy("scipy.special")
SQUARED = np.linspace(0.01, 6, 40)
GROUPS = np.array([0, 1, 1, 2])


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 4)) - 0.5


def standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / values.std()


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_kernel_is_the_general_formula(nu: float) -> None:
    z = math.sqrt(2 * nu) * np.sqrt(SQUARED)
    expected = 2 ** (1 - nu) / special.gamma(nu) * z**nu * special.kv(nu, z)  # R&W eq. 4.14
    assert matern(SQUARED, nu) == pytest.approx(expected)


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_the_slope_is_that_of_the_correlation(nu: float) -> None:
    step = 1e-6
    difference = (matern(SQUARED + step, nu) - matern(SQUARED - step, nu)) / (2 * step)
    assert correlation_and_slope(SQUARED, nu)[1] == pytest.approx(-2 * difference, rel=1e-5)
    assert matern(np.zeros(1), nu) == pytest.approx(1)


@pytest.mark.parametrize("nu", SMOOTHNESSES)
def test_a_process_of_each_smoothness_fits_and_interpolates(nu: float) -> None:
    rng = np.random.default_rng(0)
    features = rng.random((30, 2)) - 0.5
    targets = np.sin(5 * features[:, 0])
    targets = (targets - targets.mean()) / targets.std()
    groups = np.array([0, 1])
    prior = Prior(nu=nu)
    theta = fit(features, targets, groups, prior, iterations=40)
    assert theta[1] > theta[0] + 0.5  # the second coordinate does not matter, so its scale is the longer one
    mean, deviation = condition(theta, features, targets, groups, nu=nu).predict(features)
    assert np.abs(mean - targets).max() < 0.2
    assert deviation.max() < 0.3


def test_the_gradient_is_that_of_the_objective() -> None:
    features, rng = points(20), np.random.default_rng(1)
    targets, prior = rng.standard_normal(20), Prior(trend=0.1)
    captured: list[Any] = []

    def spy(theta: np.ndarray, *arguments: Any) -> Any:
        captured.append(arguments)
        return original(theta, *arguments)

    original = gaussian_process._negative_log_posterior
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian_process, "_negative_log_posterior", spy)
        fit(features, targets, GROUPS, prior, iterations=1)
    theta = prior.start(3) + 0.3 * rng.standard_normal(6)
    gradient = original(theta, *captured[0])[1]
    steps = 1e-6 * np.eye(6)
    slopes = [
        (original(theta + s, *captured[0])[0] - original(theta - s, *captured[0])[0]) / 2e-6 for s in steps
    ]
    assert gradient == pytest.approx(np.array(slopes), rel=1e-4, abs=1e-4)


def test_a_smooth_function_is_predicted_where_it_was_not_seen() -> None:
    features, unseen = points(60), points(40, seed=9)

    def objective(x: np.ndarray) -> np.ndarray:
        return np.sin(3 * x[:, 0]) + x[:, 1]

    targets = objective(features)
    posterior = condition(fit(features, targets, GROUPS, Prior(), iterations=40), features, targets, GROUPS)
    mean, deviation = posterior.predict(unseen)
    assert np.abs(mean - objective(unseen)).max() < 0.3
    assert (np.abs(mean - objective(unseen)) < 4 * deviation + 0.02).all()


def test_a_trend_extrapolates_a_parabola() -> None:
    features = points(80)
    targets = standard((features[:, 0] - 0.4) ** 2 + features[:, 3] * features[:, 1])
    known = features[:, 0] < 0.1
    theta = Prior(trend=1.0).start(3)
    without = theta.copy()
    without[-2] = Prior().start(3)[-2]
    errors = []
    for each in (without, theta):
        posterior = condition(each, features[known], targets[known], GROUPS)
        errors.append(float(np.abs(posterior.mean(features[~known]) - targets[~known]).mean()))
    assert errors[1] < 0.5 * errors[0]


def test_points_that_are_alike_are_no_obstacle() -> None:
    features = np.repeat(points(3) * 1e5, 50, axis=0)
    targets = np.random.default_rng(0).standard_normal(150)
    theta = Prior(trend=1.0).start(3)
    theta[-2:] = math.log(10), math.log(1e-6)
    mean, deviation = condition(theta, features, targets, GROUPS).predict(features)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (2.0, 0.5), (-3.0, 0.1)])
def test_expected_improvement_is_the_mean_of_the_improvement(mean: float, deviation: float) -> None:
    grid = mean + deviation * np.linspace(-12, 12, 200_001)
    density = np.exp(-0.5 * ((grid - mean) / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
    expected = np.trapezoid(np.maximum(-grid, 0) * density, grid)
    found = log_expected_improvement(np.array([mean]), np.array([deviation]), 0.0)
    assert np.exp(found[0]) == pytest.approx(expected, rel=1e-4)


def test_expected_improvement_orders_hopeless_points() -> None:
    scores = log_expected_improvement(np.array([50.0, 500.0, 5e4]), np.ones(3), 0.0)
    assert np.isfinite(scores).all()
    assert scores[0] > scores[1] > scores[2]


def test_losses_keep_their_order_and_the_bad_ones_lose_their_distances() -> None:
    losses = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 1e3, 1e6, 1e9])
    targets = warped(losses, 0.5)[0]
    assert (np.diff(targets) > 0).all()
    assert targets[-1] - targets[4] < 20 * (targets[4] - targets[0])
    assert np.diff(targets)[:3] == pytest.approx(np.diff(targets)[0])


@pytest.mark.parametrize(
    "losses", [[1.0, 1.0, 1.0], [-1e300, 1e300, 0.0], [np.inf, np.inf], [1.0, np.inf, 2.0]]
)
def test_odd_losses_give_finite_targets(losses: list[float]) -> None:
    assert np.isfinite(warped(np.array(losses), 0.25)[0]).all()
