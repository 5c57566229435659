"""Tasks that train small models on data that scikit-learn brings: 10 to 100 ms each, always the same splits."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from tasks import Parameters, Task, space_of

__all__ = ["boosting", "kernel_ridge", "linear_classifier", "support_vectors"]


@cache
def _data(name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets
    from sklearn.preprocessing import scale

    inputs, outputs = getattr(datasets, f"load_{name}")(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(outputs))[:size]
    return np.nan_to_num(scale(inputs))[chosen], outputs[chosen]


def _score(model: Any, name: str, size: int, scoring: str) -> float:
    """Return the negated mean score over three folds; NaN if the model cannot be fitted."""
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(3, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = cross_val_score(model, *_data(name, size), cv=folds, scoring=scoring, error_score=np.nan)
    return float(-np.mean(scores))


def _kernels() -> list[dict[str, Any]]:
    gamma = ("loguniform", [1e-5, 10])
    return [
        {"_name": "linear"},
        {"_name": "rbf", **space_of(gamma=gamma)},
        {"_name": "poly", **space_of(gamma=gamma, degree=("randint", [2, 6]), coef0=("uniform", [0, 3]))},
        {"_name": "sigmoid", **space_of(gamma=gamma, coef0=("uniform", [-2, 2]))},
    ]


def support_vectors() -> Task:
    """Minimise the error of a support-vector classifier with a nested choice of kernels."""
    space = space_of(
        C=("loguniform", [1e-3, 1e3]),
        kernel=("choice", _kernels()),
        shrinking=("choice", [True, False]),
        balanced=("choice", [True, False]),
    )

    def value(parameters: Parameters) -> float:
        from sklearn.svm import SVC

        kernel = dict(parameters["kernel"])
        model = SVC(
            C=parameters["C"],
            kernel=kernel.pop("_name"),
            shrinking=parameters["shrinking"],
            class_weight="balanced" if parameters["balanced"] else None,
            max_iter=2000,
            **kernel,
        )
        return _score(model, "digits", 300, "accuracy")

    return Task("t1", "SVM on digits, nested kernel, 10", space, value)


def kernel_ridge() -> Task:
    """Minimise the squared error of kernel ridge regression with a nested choice of kernels."""
    space = space_of(alpha=("loguniform", [1e-6, 1e3]), kernel=("choice", _kernels()))

    def value(parameters: Parameters) -> float:
        from sklearn.kernel_ridge import KernelRidge

        kernel = dict(parameters["kernel"])
        model = KernelRidge(alpha=parameters["alpha"], kernel=kernel.pop("_name"), **kernel)
        worst = 1e4  # what explodes is bad, how bad does not matter
        return min(worst, _score(model, "diabetes", 150, "neg_mean_squared_error"))

    return Task("t2", "kernel ridge on diabetes, nested kernel, 8", space, value)


def linear_classifier() -> Task:
    """Minimise the error of a linear classifier: nested penalty and schedule, and noise."""
    penalties = [
        {"_name": "l2"},
        {"_name": "l1"},
        {"_name": "elasticnet", **space_of(l1_ratio=("uniform", [0, 1]))},
    ]
    rate = ("loguniform", [1e-4, 1])
    schedules = [
        {"_name": "optimal"},
        {"_name": "constant", **space_of(eta0=rate)},
        {"_name": "invscaling", **space_of(eta0=rate, power_t=("uniform", [0.1, 1]))},
    ]
    space = space_of(
        alpha=("loguniform", [1e-7, 1]),
        loss=("choice", ["hinge", "log_loss", "modified_huber"]),
        penalty=("choice", penalties),
        schedule=("choice", schedules),
        epochs=("randint", [2, 30]),
        average=("choice", [True, False]),
    )

    def value(parameters: Parameters) -> float:
        from sklearn.linear_model import SGDClassifier

        penalty, schedule = dict(parameters["penalty"]), dict(parameters["schedule"])
        model = SGDClassifier(
            alpha=parameters["alpha"],
            loss=parameters["loss"],
            penalty=penalty.pop("_name"),
            learning_rate=schedule.pop("_name"),
            max_iter=parameters["epochs"],
            average=parameters["average"],
            tol=None,
            random_state=0,
            **penalty,
            **schedule,
        )
        return _score(model, "wine", 178, "accuracy")

    return Task("t3", "linear classifier on wine, nested twice, 9; noise", space, value, noise=0.005)


def boosting() -> Task:
    """Minimise the squared error of gradient-boosted trees."""
    space = space_of(
        n_estimators=("qloguniform", [5, 80, 1]),
        learning_rate=("loguniform", [1e-3, 1]),
        max_depth=("randint", [1, 7]),
        subsample=("uniform", [0.3, 1]),
        max_features=("uniform", [0.1, 1]),
        min_samples_leaf=("randint", [1, 30]),
        loss=("choice", ["squared_error", "huber", "absolute_error"]),
    )

    def value(parameters: Parameters) -> float:
        from sklearn.ensemble import GradientBoostingRegressor

        settings = parameters | {"n_estimators": int(parameters["n_estimators"])}
        model = GradientBoostingRegressor(random_state=0, **settings)
        return _score(model, "diabetes", 200, "neg_mean_squared_error")

    return Task("t4", "gradient boosting on diabetes, 7", space, value)
