"""Tasks whose value has few levels: errors of classifiers on some dozens of examples, and rounded formulas.

The errors are on examples that were held out, or the mean of five folds of unequal sizes: an example is a 28th of one
fold and a 29th of another, so each level is a group of values that are almost equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import synthetic
from tasks import Parameters, Task, space_of

__all__ = [
    "features_classifier",
    "flat",
    "flat_tree",
    "kernel_classifier",
    "linear_classifier",
    "neighbours",
    "steep",
    "steep_mixed",
]

_TRAINED, _JUDGED = 120, 60  # examples
_IN_FOLDS, _FOLDS = 142, 5  # examples, and the folds they are in

Error = Callable[..., float]  # of parameters, inputs and classes to train on, and those to judge by


@cache
def _blobs(seed: int, dimension: int, classes: int, spread: float) -> tuple[np.ndarray, ...]:
    """Return inputs and classes of overlapping, bent clusters: those to train on, and those to judge by."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(2 * classes, dimension))
    which = rng.integers(2 * classes, size=_TRAINED + _JUDGED)
    inputs = centres[which] + spread * rng.normal(size=(len(which), dimension))
    inputs[:, 0] += 0.4 * inputs[:, 1] ** 2
    inputs *= 10 ** rng.uniform(-0.5, 0.5, dimension)  # features of different scales
    inputs = (inputs - inputs.mean(0)) / inputs.std(0).mean()
    labels = which % classes
    return inputs[:_TRAINED], labels[:_TRAINED], inputs[_TRAINED:], labels[_TRAINED:]


def _task(
    number: int,
    about: str,
    space: dict[str, Any],
    error: Error,
    blobs: tuple[int, int, int, float],
    *,
    folds: bool,
) -> Task:
    """Return the task of an error: p1 to p4 on examples held out, p9 to p12 in folds."""

    def held_out(parameters: Parameters) -> float:
        return error(parameters, *_blobs(*blobs))

    def in_folds(parameters: Parameters) -> float:
        x, y, tx, ty = _blobs(*blobs)
        x, y = np.vstack([x, tx])[:_IN_FOLDS], np.append(y, ty)[:_IN_FOLDS]
        folds = np.array_split(np.arange(_IN_FOLDS), _FOLDS)
        errors = [
            error(parameters, np.delete(x, fold, 0), np.delete(y, fold), x[fold], y[fold]) for fold in folds
        ]
        return float(np.mean(errors))

    if folds:
        return Task(f"p{number + 8}", f"mean {about}, in five folds", space, in_folds, None)
    return Task(f"p{number}", about, space, held_out, None)


def _error(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(scores, axis=1) != labels))


def _distances(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    return np.maximum((one**2).sum(1)[:, None] + (two**2).sum(1) - 2 * one @ two.T, 0.0)


def kernel_classifier(*, folds: bool = False) -> Task:
    """Error of a regularised kernel classifier."""
    space = space_of(
        C=("loguniform", [1e-3, 1e3]),
        gamma=("loguniform", [1e-4, 1e1]),
        **{f"w{i}": ("loguniform", [0.2, 5]) for i in range(3)},
    )

    def error(parameters: Parameters, x: Any, y: Any, tx: Any, ty: Any) -> float:
        weight = np.array([parameters[f"w{i // 2}"] for i in range(6)])
        gram = np.exp(-parameters["gamma"] * _distances(weight * x, weight * x))
        weights = np.linalg.solve(gram + np.eye(len(x)) / parameters["C"], np.eye(4)[y])
        return _error(np.exp(-parameters["gamma"] * _distances(weight * tx, weight * x)) @ weights, ty)

    return _task(1, "error of a kernel classifier, 5 continuous", space, error, (1, 6, 4, 0.8), folds=folds)


def linear_classifier(*, folds: bool = False) -> Task:
    """Error of logistic regression by gradient descent."""
    space = space_of(
        lr=("loguniform", [1e-4, 10]),
        decay=("loguniform", [1e-6, 1]),
        steps=("qloguniform", [2, 200, 1]),
        momentum=("uniform", [0, 0.99]),
        scaled=("choice", [True, False]),
    )

    def error(parameters: Parameters, x: Any, y: Any, tx: Any, ty: Any) -> float:
        if parameters["scaled"]:
            x, tx = x / x.std(0), tx / x.std(0)
        weights, speed = np.zeros((10, 3)), np.zeros((10, 3))
        for _ in range(int(parameters["steps"])):
            scores = x @ weights
            odds = np.exp(scores - scores.max(1, keepdims=True))
            odds /= odds.sum(1, keepdims=True)
            slope = x.T @ (odds - np.eye(3)[y]) / len(x) + parameters["decay"] * weights
            speed = parameters["momentum"] * speed - parameters["lr"] * slope
            weights = weights + speed
            if not np.isfinite(weights).all() or abs(weights).max() > 1e6:
                return math.nan
        return _error(tx @ weights, ty)

    blobs = (2, 10, 3, 1.6 if folds else 1.0)
    return _task(2, "error of a linear classifier, 5 mixed", space, error, blobs, folds=folds)


def neighbours(*, folds: bool = False) -> Task:
    """Error of weighted nearest neighbours."""
    space = space_of(
        k=("randint", [1, 41]),
        power=("uniform", [0.5, 4]),
        fade=("loguniform", [1e-2, 1e2]),
        **{f"w{i}": ("loguniform", [0.1, 10]) for i in range(4)},
    )

    def error(parameters: Parameters, x: Any, y: Any, tx: Any, ty: Any) -> float:
        weight = np.array([parameters[f"w{i}"] for i in range(4)])
        gaps = (np.abs(tx[:, None] - x[None]) * weight) ** parameters["power"]
        far = gaps.sum(2) ** (1 / parameters["power"])
        nearest = np.argsort(far, axis=1, kind="stable")[:, : parameters["k"]]
        rows = np.arange(len(tx))[:, None]
        votes = np.exp(-parameters["fade"] * far[rows, nearest])
        scores = np.zeros((len(tx), 3))
        for c in range(3):
            scores[:, c] = (votes * (y[nearest] == c)).sum(1)
        return _error(scores, ty)

    return _task(3, "error of nearest neighbours, 7 mixed", space, error, (3, 4, 3, 0.9), folds=folds)


def features_classifier(*, folds: bool = False) -> Task:
    """Error of a network with random features and a nested choice of its activation."""
    kinds = [
        {"_name": "relu", **space_of(bias=("uniform", [-2, 2]))},
        {"_name": "wave", **space_of(frequency=("loguniform", [1e-2, 10]))},
        {"_name": "plain"},
    ]
    space = space_of(
        width=("qloguniform", [4, 256, 1]),
        ridge=("loguniform", [1e-6, 1e2]),
        scale=("loguniform", [1e-2, 10]),
        kind=("choice", kinds),
    )

    def error(parameters: Parameters, x: Any, y: Any, tx: Any, ty: Any) -> float:
        rng, width, kind = np.random.default_rng(7), int(parameters["width"]), parameters["kind"]
        matrix = parameters["scale"] * rng.normal(size=(5, 256))[:, :width]
        phases = rng.uniform(0, 2 * np.pi, 256)[:width]

        def hidden(inputs: np.ndarray) -> np.ndarray:
            if kind["_name"] == "relu":
                return np.maximum(inputs @ matrix + kind["bias"], 0)
            if kind["_name"] == "wave":
                return np.cos(kind["frequency"] * (inputs @ matrix) + phases)
            return inputs @ matrix

        h = np.hstack([hidden(x), np.ones((len(x), 1))])
        th = np.hstack([hidden(tx), np.ones((len(tx), 1))])
        gram = h.T @ h + parameters["ridge"] * np.eye(h.shape[1])
        return _error(th @ np.linalg.solve(gram, h.T @ np.eye(5)[y]), ty)

    return _task(4, "error of random features, nested, 5 active", space, error, (4, 5, 5, 0.6), folds=folds)


def _in_levels(name: str, task: Task, limits: Sequence[float]) -> Task:
    """Round a task: the first level is the best, and each limit begins the next."""

    def value(parameters: Parameters) -> float:
        return float(np.searchsorted(limits, task.truth(parameters))) / _JUDGED

    return Task(name, f"{task.about}, in {len(limits) + 1} levels", task.space, value, 0.0)


def steep() -> Task:
    """Round Hartmann's function: one random point in 5,000 is on the best level, one in 500 on the next."""
    limits = (
        -2.88,
        -2.48,
        -1.866,
        -1.183,
        -0.7247,
        -0.4101,
        -0.257,
        -0.1645,
        -0.1038,
        -0.0625,
        -0.03442,
        -0.01642,
    )
    return _in_levels("p5", synthetic.hartmann(), limits)


def steep_mixed() -> Task:
    """Round the mixed task with the shares of `steep`."""
    limits = (2.299, 3.834, 6.043, 9.316, 13.27, 18.11, 22.25, 26.14, 30.02, 34.19, 38.95, 45.16, 54.94)
    return _in_levels("p6", synthetic.mixed(), limits)


def flat() -> Task:
    """Round the task of which 4 of 15 parameters matter: one random point in 50 is on the second best level."""
    return _in_levels("p7", synthetic.few_matter(), (0.02916, 0.09494, 0.2677, 0.4421, 0.7495, 1.288, 1.969))


def flat_tree() -> Task:
    """Round the tree of choices with the shares of `flat`."""
    return _in_levels("p8", synthetic.tree(), (0.1079, 0.3499, 0.7369, 0.974, 1.273, 1.681, 2.55))
