"""The tasks of Bayesmark: nine models of scikit-learn on six data sets that it brings, two metrics each."""

from __future__ import annotations

import math
from typing import Any

from bayesmark.constants import DATA_LOADER_NAMES, MODEL_NAMES, SCORERS_CLF, SCORERS_REG
from bayesmark.data import ProblemType, get_problem_type
from bayesmark.sklearn_funcs import SklearnModel
from task import Task

__all__ = ["names", "open_task"]


def names(_table: str) -> list[str]:
    """Return the names of the 108 tasks."""
    return [
        SklearnModel.test_case_str(model, data, metric)
        for model in sorted(MODEL_NAMES)
        for data in sorted(DATA_LOADER_NAMES)
        for metric in (SCORERS_CLF if get_problem_type(data) == ProblemType.clf else SCORERS_REG)
    ]


def open_task(_table: str, name: str, _seed: int) -> Task:
    """Make a task; the split of its data is the same for every seed."""
    model = SklearnModel(*SklearnModel.inverse_test_case_str(name))
    described = model.get_api_config()

    def evaluate(parameters: dict[str, Any]) -> list[float]:
        given = {key: _native(described[key], value) for key, value in parameters.items()}
        try:
            visible, _ = model.evaluate(given)
        # A model that cannot be trained is a failed trial, whatever it raises.
        except Exception:  # noqa: BLE001
            return [math.nan]
        return [visible]

    return Task({key: _parameter(one) for key, one in described.items()}, evaluate)


def _parameter(one: dict[str, Any]) -> dict[str, Any]:
    """Translate a parameter; on a logit scale the optimisers see the logarithm of the odds."""
    if one["type"] == "bool":
        return {"_type": "choice", "_value": [False, True]}
    low, high = one["range"]
    if one["type"] == "int":
        if one["space"] == "log":
            return {"_type": "qloguniform", "_value": [low, high, 1]}
        return {"_type": "randint", "_value": [low, high + 1]}
    if one["space"] == "logit":
        return {"_type": "uniform", "_value": [_logit(low), _logit(high)]}
    return {"_type": "loguniform" if one["space"] == "log" else "uniform", "_value": [low, high]}


def _native(one: dict[str, Any], value: Any) -> Any:
    if one["type"] == "bool":
        return bool(value)
    if one["type"] == "int":
        return round(value)
    value = 1 / (1 + math.exp(-value)) if one["space"] == "logit" else float(value)
    return min(max(value, one["range"][0]), one["range"][1])


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
