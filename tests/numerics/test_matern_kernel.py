"""The Matern kernels: their formulas, their slopes, and the gradient of a Gaussian process with each."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pitchpipe.numerics.gaussian_process import Prior, condition, fit
from pitchpipe.numerics.matern_kernel import SMOOTHNESSES, correlation_and_slope, matern

from ..lazy import Lazy

special = Lazy("scipy.special")
SQUARED = np.linspace(0.01, 6, 40)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_it_is_the_general_formula(nu: float) -> None:
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
