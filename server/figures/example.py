"""An invented experiment, always the same, which the documentation and the examples draw."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...protocol import JsonObject, Parameters
from ...search_space import SearchSpace
from .dimensions import dimensions_of
from .tables import Curve, ExperimentTable, Objective, TrialRecord

EXAMPLE_SPACE: JsonObject = {
    "lr": {"_type": "loguniform", "_value": [1e-5, 0.1]},
    "batch_size": {"_type": "choice", "_value": [32, 64, 128]},
    "layers": {"_type": "randint", "_value": [1, 6]},
    "dropout": {"_type": "uniform", "_value": [0.0, 0.6]},
    "optimizer": {
        "_type": "choice",
        "_value": [
            {"_name": "adam"},
            {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0.0, 0.99]}},
        ],
    },
}
_STEPS = 20
_WORKERS = 4


def example_table(trials: int = 60, seed: int = 0) -> ExperimentTable:
    """Return a search over a network's training: nested parameters, two objectives, failed and early-stopped trials.

    >>> table = example_table()
    >>> len(table.trials), [objective.name for objective in table.objectives], table.dimensions[-1].name
    (60, ['loss', 'seconds'], 'optimizer.momentum')
    """
    rng = np.random.default_rng(seed)
    space = SearchSpace.parse(EXAMPLE_SPACE)
    points = [_drawn(space, rng, number, trials) for number in range(trials)]
    objectives = [Objective(name="loss"), Objective(name="seconds")]
    records, curves, free = [], [], [1.7e9] * _WORKERS
    losses = [_loss(point) + 0.02 * rng.standard_normal() for point in points]
    for number, (point, loss) in enumerate(zip(points, losses, strict=True)):
        worker = int(np.argmin(free))
        record, curve = _run(number, point, loss, float(np.median(losses)), free[worker], rng)
        free[worker] = record.end_time or 0.0
        record = replace(record, worker=f"slot {worker}")
        records.append(record)
        curves.append(curve)
    dimensions = dimensions_of(EXAMPLE_SPACE)
    return ExperimentTable.of("example", objectives, records, dimensions, curves=curves)


def _drawn(space: SearchSpace, rng: np.random.Generator, number: int, trials: int) -> Parameters:
    """Return a point; later ones are the best of more draws, as if a tuner learned."""
    draws = [space.sample(rng) for _ in range(1 + 6 * number // trials)]
    return min(draws, key=_loss)


def _loss(point: Parameters) -> float:
    optimizer = point["optimizer"]
    best = -3.0 if optimizer["_name"] == "adam" else -1.8
    off = (math.log10(point["lr"]) - best) / 2.0
    momentum = 0.0 if optimizer["_name"] == "adam" else 0.3 * (0.9 - optimizer["momentum"]) ** 2
    return (
        0.2
        + 0.5 * off**2
        + 0.25 * (point["dropout"] - 0.2) ** 2
        + 0.02 * (point["layers"] - 3) ** 2
        + momentum
    )


def _run(
    number: int, point: Parameters, loss: float, median: float, start: float, rng: np.random.Generator
) -> tuple[TrialRecord, Curve]:
    """Return what a trial reports and how it ends."""
    seconds = 5.0 * point["layers"] * (64 / point["batch_size"]) ** 0.5
    curve = loss + (2.3 - loss) * np.exp(-np.arange(_STEPS) / 4.0) + 0.01 * rng.standard_normal(_STEPS)
    is_failed = point["lr"] > 0.06
    is_stopped = not is_failed and loss > median + 0.1
    shown = int(rng.integers(1, 4)) if is_failed else int(rng.integers(4, 10)) if is_stopped else _STEPS
    status = "FAILED" if is_failed else "EARLY_STOPPED" if is_stopped else "SUCCEEDED"
    reason = {
        "FAILED": "ValueError: loss is NaN",
        "EARLY_STOPPED": f"{curve[shown - 1]:.3g} above the median",
    }
    record = TrialRecord(
        number=number,
        status=status,
        parameters=point,
        values={"loss": float(loss), "seconds": seconds} if status == "SUCCEEDED" else {},
        reported={"loss": float(loss if status == "SUCCEEDED" else curve[shown - 1])},
        start_time=start,
        end_time=start + seconds * shown / _STEPS,
        reason=reason.get(status, ""),
        trial_id=f"T{number:04}",
        reports=shown,
    )
    return record, Curve(number, np.arange(float(shown)), curve[:shown])
