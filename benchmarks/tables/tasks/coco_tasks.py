"""The suites of COCO. The seed of a search is the instance of the function, from 1."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import cocoex
import numpy as np
from task import Task

__all__ = ["names", "open_task"]

# Of all dimensions those where 100 evaluations for each parameter take less than an hour.
_DIMENSIONS = {"bbob": (2, 3, 5, 10), "bbob-mixint": (5, 10, 20), "bbob-biobj-mixint": (5, 10)}
_FUNCTIONS = {"bbob": 24, "bbob-mixint": 24, "bbob-biobj-mixint": 92}


def names(table: str) -> list[str]:
    """Return the names of a suite's functions in every dimension."""
    return [
        f"f{function:02}_d{dimension:02}"
        for dimension in _DIMENSIONS[table]
        for function in range(1, _FUNCTIONS[table] + 1)
    ]


def open_task(table: str, name: str, seed: int) -> Task:
    """Make a function; `best` is its minimum, `ideal` and `worst` are the ends of its front."""
    function, dimension = (int(part[1:]) for part in name.split("_"))
    chosen = f"function_indices:{function} dimensions:{dimension}"
    suite = cocoex.Suite(table, f"instances:{seed + 1}", chosen)
    problem = next(iter(suite))
    space = {f"x{i}": _parameter(problem, i) for i in range(dimension)}

    def evaluate(parameters: dict[str, Any], _kept: Any = suite) -> list[float]:
        values = problem(np.array([float(parameters[f"x{i}"]) for i in range(dimension)]))
        return [float(value) for value in np.atleast_1d(values)]

    optima = [problem(point) for point in np.atleast_2d(_best_points(problem))]
    facts: dict[str, Any] = {"dimension": dimension, "function": function}
    if problem.number_of_objectives == 1:
        return Task(space, evaluate, facts=facts | {"best": float(optima[0])})
    ends = np.array(optima)
    facts |= {"ideal": ends.min(axis=0).tolist(), "worst": ends.max(axis=0).tolist(), "volume": 1.0}
    return Task(space, evaluate, ["default", "second"], facts)


def _parameter(problem: Any, index: int) -> dict[str, Any]:
    """Return a parameter; COCO's integer variables come first."""
    low, high = float(problem.lower_bounds[index]), float(problem.upper_bounds[index])
    if index < problem.number_of_integer_variables:
        return {"_type": "randint", "_value": [round(low), round(high) + 1]}
    return {"_type": "uniform", "_value": [low, high]}


def _best_points(problem: Any) -> np.ndarray:
    """Return the best point for each objective; COCO writes them into a file of the working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            problem._best_parameter("print")
            [written] = Path(folder).iterdir()
            return np.loadtxt(written)
        finally:
            os.chdir(before)
