"""The network learns, its gradient is right, and the regression is the exact posterior of the best precisions."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.tuners.dngo import Network, regress

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (40, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def test_the_gradient_is_that_of_half_the_mean_squared_error() -> None:
    network = Network(np.random.default_rng(1), 3, (4, 5))
    gradient = network._gradient(X, Y)

    def error(flat: np.ndarray) -> float:
        network._flat = flat
        return 0.5 * float(((network.output(X) - Y) ** 2).mean())

    start = network._flat.copy()
    for i in range(0, len(start), 3):
        step = np.zeros_like(start)
        step[i] = 1e-6
        assert gradient[i] == pytest.approx((error(start + step) - error(start - step)) / 2e-6, abs=1e-7)


def test_training_fits() -> None:
    network = Network(np.random.default_rng(1), 3, (30, 30))
    network.train(X, Y, 400)
    assert np.abs(network.output(X) - Y).mean() < 0.05


def test_it_predicts_points_it_has_not_seen_and_knows_what_it_does_not_know() -> None:
    network = Network(np.random.default_rng(1), 3, (50, 50, 50))
    network.train(X, Y, 300)
    posterior = regress(network, X, Y)
    new = RNG.uniform(-1, 1, (200, 3))
    mean, _ = posterior.predict(new)
    assert np.corrcoef(mean, np.sin(2 * new[:, 0]) + new[:, 1] * new[:, 2])[0, 1] > 0.95
    _, near = posterior.predict(X)
    _, far = posterior.predict(X * 3)
    assert near.mean() < 0.5 * far.mean()


class Identity(Network):
    def features(self, inputs: np.ndarray) -> np.ndarray:
        return inputs


def test_the_regression_is_ridge_regression_with_noise_and_weights_as_they_are() -> None:
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(500, 4))
    weights = np.array([1.0, -2.0, 0.0, 0.5])
    targets = inputs @ weights + 3.0 + 0.1 * rng.normal(size=500)
    posterior = regress(Identity(rng, 4, (1,)), inputs, targets)
    assert posterior.mean == pytest.approx([*weights, 3.0], abs=0.03)
    _, deviation = posterior.predict(np.zeros((1, 4)))
    assert deviation[0] == pytest.approx(0.1 / np.sqrt(500), rel=0.1)


@pytest.mark.parametrize("seed", range(40))
def test_nearly_collinear_features_leave_the_regression_finite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (880, 1))
    slopes = rng.normal(size=(1, 50)) * 10.0 ** rng.uniform(-9, 0, (1, 50))
    features = np.tanh(x @ slopes + 3 * rng.normal(size=(1, 50)))
    targets = np.sin(5 * x[:, 0]) + 0.1 * rng.normal(size=880)
    mean, deviation = regress(Identity(rng, 50, (1,)), features, targets).predict(features)
    assert np.abs(mean - targets).mean() < 1
    assert np.isfinite(deviation).all()
