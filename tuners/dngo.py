"""DNGO: the last hidden layer of a small neural network serves as basis functions of a Bayesian linear regression.

    Snoek et al., Scalable Bayesian Optimization Using Deep Neural Networks, ICML 2015 (the method)
    Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015 (training)
    Bishop, Pattern Recognition and Machine Learning, 2006 (sections 3.3 and 3.5: the regression)

It is linear in the number of results. Everything is numpy: with 50 units a layer and some hundred results, a framework
would cost more than it saves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..numerics import Floats
from ..plugins import integer
from .models import Everywhere, Model, Score, SurrogateTuner, Training, log_expected_improvement

_LAYERS = (50, 50, 50)  # Snoek et al. 2015, section 3.1
_SCALE = 3.0  # of inputs: features of the unit interval have a variance of about 1/12
_LARGEST_SET = 1000
_RATE, _MEMORY, _MEMORY_OF_SQUARES, _SMALL = 0.01, 0.9, 0.999, 1e-8  # Kingma and Ba 2015, algorithm 1
_DECAY = 1e-4
_UPDATES = 40  # of the two precisions; they settle in about ten
_LEAST_VARIANCE = 1e-12


class DNGOTuner(SurrogateTuner):
    """Bayesian optimisation with a neural network: for hundreds of results and more.

    `optimize_mode` is `maximize` or `minimize`, `seed` an integer of at least 0. The network is trained again,
    for `num_epochs_per_training` epochs, when there are a quarter more results than at the last training, at
    the latest after `trials_per_update`; the regression uses every result. A suggestion is chosen from `sample_size`
    random candidates. The first `startup` suggestions fill the space. Raises ValueError for other
    arguments, NoMoreTrialError when a finite space is exhausted.

    >>> tuner = DNGOTuner("minimize", seed=1)
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
        sample_size: int = 1000,
        trials_per_update: int = 20,
        num_epochs_per_training: int = 500,
        startup: int = 10,
        seed: int | None = None,
    ) -> None:
        super().__init__(optimize_mode, seed, integer("startup", startup, 1), _LARGEST_SET)
        self._everywhere = Everywhere(random=integer("sample_size", sample_size, 1))
        self._every = integer("trials_per_update", trials_per_update, 1)
        self._epochs = integer("num_epochs_per_training", num_epochs_per_training, 1)

    def _begin(self) -> None:
        super()._begin()
        self._network: Network | None = None
        self._trained_with = 0

    def _fit(self, training: Training) -> LinearPosterior:
        inputs, n = training.features * _SCALE, self._history.finished
        network = self._network
        if network is None or n - self._trained_with >= min(self._every, max(self._trained_with // 4, 1)):
            network = self._network = Network(self._rng, inputs.shape[1], _LAYERS)
            network.train(inputs, training.targets, self._epochs)
            self._trained_with = n
        return regress(network, inputs, training.targets)

    def _acquisition(self, model: Model, training: Training) -> Score:
        best = float(training.targets.min())
        return lambda features: log_expected_improvement(*model.predict(features * _SCALE), best)


class Network:
    """A multilayer perceptron with tanh units; the parameters of all layers are views of one array.

    >>> network = Network(np.random.default_rng(0), 1, (20, 20))
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> network.train(x, np.sin(3 * x[:, 0]), 300)
    >>> bool(np.abs(network.output(x) - np.sin(3 * x[:, 0])).mean() < 0.1)
    True
    """

    def __init__(self, rng: np.random.Generator, inputs: int, layers: tuple[int, ...]) -> None:
        widths = (inputs, *layers, 1)
        self._shapes = [(a + 1, b) for a, b in pairwise(widths)]  # the last row: biases
        # Glorot and Bengio, AISTATS 2010: the variance of activations stays the same from layer to layer.
        parts = [rng.normal(0, math.sqrt(2 / (a + b)), (a, b)) for a, b in self._shapes]
        for part in parts:
            part[-1] = 0.0
        self._flat = np.concatenate([part.ravel() for part in parts])

    def features(self, inputs: Floats) -> Floats:
        """Return the activations of the last hidden layer, shape (m, h)."""
        return self._activations(inputs)[-1]

    def output(self, inputs: Floats) -> Floats:
        """Return what the network itself predicts, shape (m,)."""
        last = self._views(self._flat)[-1]
        return (self.features(inputs) @ last[:-1] + last[-1])[:, 0]

    def train(self, inputs: Floats, targets: Floats, epochs: int) -> None:
        """Minimise the squared error and a small weight decay by Adam, all targets at each step."""
        first, second = np.zeros_like(self._flat), np.zeros_like(self._flat)
        for step in range(1, epochs + 1):
            gradient = self._gradient(inputs, targets) + _DECAY * self._flat
            first = _MEMORY * first + (1 - _MEMORY) * gradient
            second = _MEMORY_OF_SQUARES * second + (1 - _MEMORY_OF_SQUARES) * gradient * gradient
            rate = _RATE * math.sqrt(1 - _MEMORY_OF_SQUARES**step) / (1 - _MEMORY**step)
            self._flat = self._flat - rate * first / (np.sqrt(second) + _SMALL)

    def _views(self, flat: Floats) -> list[Floats]:
        views, start = [], 0
        for a, b in self._shapes:
            views.append(flat[start : start + a * b].reshape(a, b))
            start += a * b
        return views

    def _activations(self, inputs: Floats) -> list[Floats]:
        """Return the inputs and the activations of each hidden layer."""
        activations = [inputs]
        for weights in self._views(self._flat)[:-1]:
            activations.append(np.tanh(activations[-1] @ weights[:-1] + weights[-1]))
        return activations

    def _gradient(self, inputs: Floats, targets: Floats) -> Floats:
        """Return the gradient of half the mean squared error by all parameters."""
        activations, weights = self._activations(inputs), self._views(self._flat)
        gradient = np.empty_like(self._flat)
        parts = self._views(gradient)
        error = activations[-1] @ weights[-1][:-1] + weights[-1][-1] - targets[:, None]
        signal = error / len(targets)
        for layer in reversed(range(len(weights))):
            parts[layer][:-1] = activations[layer].T @ signal
            parts[layer][-1] = signal.sum(axis=0)
            if layer:
                signal = (signal @ weights[layer][:-1].T) * (1 - activations[layer] ** 2)
        return gradient


@dataclass(frozen=True, slots=True, eq=False)
class LinearPosterior:
    """A normal distribution over the weights of a linear function of a network's features."""

    network: Network
    mean: Floats
    covariance: Floats

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the noise-free function at inputs of shape (m, f) (Bishop eq. 3.58)."""
        basis = _with_bias(self.network.features(features))
        variance = np.einsum("ij,jk,ik->i", basis, self.covariance, basis)
        return basis @ self.mean, np.sqrt(np.maximum(variance, _LEAST_VARIANCE))


def regress(network: Network, inputs: Floats, targets: Floats) -> LinearPosterior:
    """Return the posterior whose two precisions have the highest evidence (Bishop eqs. 3.53, 3.54, 3.92 and 3.95)."""
    basis = _with_bias(network.features(inputs))
    n = len(targets)
    eigenvalues, vectors = np.linalg.eigh(basis.T @ basis)
    # Directions below the rounding error of the matrix carry noise only, which the updates would amplify without bound.
    seen = eigenvalues > eigenvalues[-1] * n * np.finfo(float).eps
    eigenvalues = np.where(seen, eigenvalues, 0.0)
    projected = np.where(seen, vectors.T @ (basis.T @ targets), 0.0)
    alpha, beta = 1.0, 10.0
    for _ in range(_UPDATES):
        weights = beta * projected / (alpha + beta * eigenvalues)
        gamma = float((beta * eigenvalues / (alpha + beta * eigenvalues)).sum())
        error = float(targets @ targets - 2 * weights @ projected + (weights**2) @ eigenvalues)
        # The ones and hundredths are weak priors on the precisions: without them, a perfect fit has no noise at all.
        alpha = (gamma + 1) / (float(weights @ weights) + 1)
        beta = (n - gamma + 1) / (max(error, 0.0) + 0.01)
    mean = vectors @ (beta * projected / (alpha + beta * eigenvalues))
    covariance = (vectors / (alpha + beta * eigenvalues)) @ vectors.T
    return LinearPosterior(network, mean, covariance)


def _with_bias(features: Floats) -> Floats:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)
