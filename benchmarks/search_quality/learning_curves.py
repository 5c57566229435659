"""Tasks with learning curves, for rules that stop trials early."""

from __future__ import annotations

import itertools
import math
import warnings
import zlib
from collections.abc import Iterator
from functools import cache

import numpy as np
from tasks import Curves, Parameters, space_of

__all__ = ["crossing", "digits", "digits_and_size", "error_and_cost", "power_laws"]


def power_laws() -> Curves:
    """Curves that fall to a floor; floor and speed depend on the parameters, so early results tell much."""
    space = space_of(lr=("loguniform", [1e-5, 1]), width=("randint", [1, 65]), reg=("loguniform", [1e-6, 1]))

    def curve(parameters: Parameters) -> Iterator[float]:
        rate = math.log10(parameters["lr"]) + 2
        floor = 0.05 + 0.05 * rate**2 + 0.02 * (math.log10(parameters["reg"]) + 3) ** 2
        floor += 0.1 * (parameters["width"] / 64 - 0.6) ** 2
        speed = 1.2 - 0.25 * abs(rate)
        for step in itertools.count(1):
            yield floor + (1 - floor) * step ** -max(0.1, speed)

    return Curves("c1", "power laws", space, 27, curve)


def crossing() -> Curves:
    """Curves that cross: what is slow at first ends lower, so early results mislead; and each result is noisy."""
    space = space_of(**{f"x{i}": ("uniform", [0, 1]) for i in range(4)})

    def curve(parameters: Parameters) -> Iterator[float]:
        x = np.array([parameters[f"x{i}"] for i in range(4)])
        floor = float(np.sum(np.array([1.0, 0.6, 0.3, 0.1]) * (x - np.array([0.8, 0.3, 0.6, 0.5])) ** 2))
        slowness = 2 + 10 * x[0]
        rng = np.random.default_rng(zlib.crc32(x.tobytes()))
        for step in itertools.count(1):
            yield floor + 0.6 * math.exp(-step / slowness) + 0.005 * float(rng.normal())

    return Curves("c2", "curves that cross, noise", space, 27, curve)


def error_and_cost() -> Curves:
    """Curves of an error with a cost: large models err less and cost more, and bad settings show early."""
    space = space_of(
        lr=("loguniform", [1e-5, 1]),
        width=("qloguniform", [4, 512, 1]),
        depth=("randint", [1, 9]),
        reg=("loguniform", [1e-6, 1]),
    )

    def curve(parameters: Parameters) -> Iterator[Parameters]:
        width, depth = parameters["width"], parameters["depth"]
        rate = math.log10(parameters["lr"]) + 2 + 0.25 * (depth - 1) / 7
        floor = 0.02 + 0.5 * (width * depth**0.5) ** -0.5 + 0.04 * rate**2
        floor += 0.015 * (math.log10(parameters["reg"]) + 3) ** 2
        speed = max(0.15, 1.1 - 0.25 * abs(rate))
        for step in itertools.count(1):
            error = floor + max(1 - floor, 0) * (1 + step) ** -speed
            yield {"default": error, "cost": math.log10(width**2 * depth)}

    goals = (
        {"direction": "minimize", "reference": 1.0},
        {"name": "cost", "direction": "minimize", "reference": 6.5},
    )
    return Curves("f1", "error and cost", space, 27, curve, goals)


def digits() -> Curves:
    """Train a small network on digits; the curve is its error after every epoch."""
    space = space_of(
        lr=("loguniform", [1e-4, 1]),
        units=("qloguniform", [4, 64, 4]),
        alpha=("loguniform", [1e-6, 1]),
        batch=("choice", [16, 64, 256]),
        solver=("choice", ["adam", "sgd"]),
        activation=("choice", ["relu", "tanh", "logistic"]),
    )
    return Curves("c3", "network on digits", space, 27, _train)


def digits_and_size() -> Curves:
    """Train a small network on digits; its error after every epoch, and the logarithm of its size."""
    base = digits()

    def curve(parameters: Parameters) -> Iterator[Parameters]:
        for error in base.curve(parameters):
            yield {"default": error, "size": math.log10(parameters["units"])}

    goals = ({"reference": 1.0}, {"name": "size", "reference": 2.0})
    minimized = tuple({**one, "direction": "minimize"} for one in goals)
    return Curves("f2", "network on digits, error and size", base.space, base.epochs, curve, minimized)


@cache
def _halves() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    inputs, outputs = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(outputs))[:800]
    first, second = order[:400], order[400:]
    return inputs[first] / 16, outputs[first], inputs[second] / 16, outputs[second]


def _train(parameters: Parameters) -> Iterator[float]:
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
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(inputs, outputs, classes=np.arange(10))
        yield 1.0 - float(model.score(judged, labels))
