"""Whether a tuner finds better points than random search, with a confidence interval; for tests of tuners.

The functions are synthetic and quick; which tuner is good for which real task is in docs/reference/tuners.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..numerics import interval, mean
from ..protocol import Config, Parameters
from ..search_space import choice, loguniform, quniform, randint, uniform
from ..tuners import NoMoreTrialError, RandomTuner, Tuner


@dataclass(frozen=True, slots=True)
class Task:
    """A search space and a function of its points to be minimised; the least value is 0."""

    space: Config
    objective: Callable[[Parameters], float]


def _bowl(point: Parameters) -> float:
    lr, rest = math.log10(point["lr"]) + 2.5, (point["x"] - 1.2, point["y"] + 2.1, (point["n"] - 13) / 4)
    return lr * lr + sum(part * part for part in rest)


def _branches(point: Parameters) -> float:
    model, penalty = point["model"], abs(point["scale"] - 0.7)
    if model["_name"] == "linear":
        return 1.5 + penalty
    if model["_name"] == "forest":
        return 1.0 + abs(model["trees"] - 70) / 100 + penalty
    inner = 0.5 * abs(math.log10(model["kernel"]["width"]) + 1) if model["kernel"]["_name"] == "rbf" else 1.0
    return inner + 0.2 * abs(math.log10(model["c"]) - 1) + penalty


#: Tasks by name: numbers of several kinds, and choices nested in choices.
TASKS: dict[str, Task] = {
    "bowl": Task(
        {
            "x": uniform(-5, 5),
            "y": quniform(-5, 5, 0.1),
            "lr": loguniform(1e-5, 1),
            "n": randint(1, 33),
        },
        _bowl,
    ),
    "branches": Task(
        {
            "model": choice(
                [
                    {"_name": "linear"},
                    {"_name": "forest", "trees": randint(10, 200)},
                    {
                        "_name": "kernel",
                        "c": loguniform(1e-3, 1e3),
                        "kernel": choice(
                            [{"_name": "flat"}, {"_name": "rbf", "width": loguniform(1e-3, 10)}]
                        ),
                    },
                ]
            ),
            "scale": uniform(0, 1),
        },
        _branches,
    ),
}


def best_value(tuner: Tuner, task: Task, trials: int, workers: int = 1) -> float:
    """Return the least value that a tuner finds in some trials, `workers` of them at a time."""
    tuner.update_search_space(dict(task.space))
    running: list[tuple[int, Any]] = []
    best = math.inf
    for parameter_id in range(trials):
        try:
            running.append((parameter_id, tuner.generate_parameters(parameter_id)))
        except NoMoreTrialError:
            break
        while running and (len(running) >= workers or parameter_id == trials - 1):
            ended, point = running.pop(0)
            value = task.objective(point)
            best = min(best, value)
            tuner.receive_trial_result(ended, point, value)
            tuner.trial_end(ended, True)
    return best


def advantage(
    make: Callable[[int], Tuner], task: Task, trials: int = 60, seeds: int = 8, workers: int = 1
) -> tuple[float, float]:
    """Return a 95 % interval of the mean log10 of (the tuner's best value / that of random search).

    Above 0, random search is better. `make` gets a seed; pairs of runs share one. The interval is Student's, and
    infinite for a single seed.

    >>> low, high = advantage(lambda seed: RandomTuner(seed), TASKS["bowl"], trials=5, seeds=5)
    >>> low, high
    (0.0, 0.0)
    """
    ratios = [
        math.log10(best_value(make(seed), task, trials, workers) + 1e-12)
        - math.log10(best_value(RandomTuner(seed), task, trials) + 1e-12)
        for seed in range(seeds)
    ]
    middle, half = mean(ratios), interval(ratios)
    return (-math.inf, math.inf) if half is None else (middle - half, middle + half)
