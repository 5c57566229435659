"""Tasks with learning curves, for rules that stop trials early."""

from __future__ import annotations

import math
import warnings
import zlib
from functools import cache
from typing import Any

import numpy as np
from tasks import Curves, Parameters

__all__ = ["crossing", "digits", "power_laws"]


def _space(**parameters: tuple[str, list[Any]]) -> dict[str, Any]:
    return {name: {"_type": kind, "_value": values} for name, (kind, values) in parameters.items()}


def power_laws() -> Curves:
    """Curves that fall to a floor; floor and speed depend on the parameters, so early results tell much."""
    space = _space(lr=("loguniform", [1e-5, 1]), width=("randint", [1, 65]), reg=("loguniform", [1e-6, 1]))

    def curve(parameters: Parameters, epochs: int) -> np.ndarray:
        rate = math.log10(parameters["lr"]) + 2
        floor = 0.05 + 0.05 * rate**2 + 0.02 * (math.log10(parameters["reg"]) + 3) ** 2
        floor += 0.1 * (parameters["width"] / 64 - 0.6) ** 2
        speed = 1.2 - 0.25 * abs(rate)
        steps = np.arange(1, epochs + 1)
        return floor + (1 - floor) * steps ** -max(0.1, speed)

    return Curves("c1", "power laws", space, 27, curve, None)


def crossing() -> Curves:
    """Curves that cross: what is slow at first ends lower, so early results mislead; and each result is noisy."""
    space = _space(**{f"x{i}": ("uniform", [0, 1]) for i in range(4)})

    def curve(parameters: Parameters, epochs: int) -> np.ndarray:
        x = np.array([parameters[f"x{i}"] for i in range(4)])
        floor = float(np.sum(np.array([1.0, 0.6, 0.3, 0.1]) * (x - np.array([0.8, 0.3, 0.6, 0.5])) ** 2))
        slowness = 2 + 10 * x[0]
        steps = np.arange(1, epochs + 1)
        noise = np.random.default_rng(zlib.crc32(x.tobytes())).normal(size=epochs)
        return floor + 0.6 * np.exp(-steps / slowness) + 0.005 * noise

    return Curves("c2", "curves that cross, noise", space, 27, curve, None)


def digits() -> Curves:
    """The error of a small network on digits after every epoch."""
    space = _space(
        lr=("loguniform", [1e-4, 1]),
        units=("qloguniform", [4, 64, 4]),
        alpha=("loguniform", [1e-6, 1]),
        batch=("choice", [16, 64, 256]),
        solver=("choice", ["adam", "sgd"]),
        activation=("choice", ["relu", "tanh", "logistic"]),
    )
    return Curves("c3", "network on digits", space, 27, _train)


@cache
def _halves() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    inputs, outputs = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(outputs))[:800]
    first, second = order[:400], order[400:]
    return inputs[first] / 16, outputs[first], inputs[second] / 16, outputs[second]


def _train(parameters: Parameters, epochs: int) -> np.ndarray:
    from sklearn.neural_network import MLPClassifier

    inputs, outputs, judged, labels = _halves()
    model = MLPClassifier(
        (int(parameters["units"]),),
        activation=parameters["activation"],
        solver=parameters["solver"],
        learning_rate_init=parameters["lr"],
        alpha=parameters["alpha"],
        batch_size=parameters["batch"],
        random_state=0,
    )
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(epochs):
            model.partial_fit(inputs, outputs, classes=np.arange(10))
            errors.append(1.0 - model.score(judged, labels))
    return np.array(errors)
