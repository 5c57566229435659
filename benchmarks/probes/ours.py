"""What the probes of Pitchpipe share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import SPACE

from pitchpipe import Experiment

__all__ = ["rows_of", "run", "succeeded_per_second"]

_SERVICES = {"local": {"platform": "local"}, "ray": {"platform": "ray", "idle_timeout": 0}}


def run(
    trial: Callable[[dict[str, Any]], Any] | str, number: int, *, platform: str = "local", **config: Any
) -> Path:
    """Run an experiment of `number` trials, two at once, with the Random tuner, and return its folder."""
    config.setdefault("search_space", SPACE)
    experiment = Experiment(
        trial,
        tuner={"name": "Random"},
        max_trial_number=number,
        trial_concurrency=2,
        seed=1,
        training_service=_SERVICES[platform],
        directory=Path.cwd(),
        **config,
    )
    result = experiment.run()
    if result.status != "DONE":
        raise SystemExit(f"{result.status}: {result.reason}")
    return result.folder


def rows_of(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Query the database of an experiment."""
    database = sqlite3.connect(folder / "experiment.db")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def succeeded_per_second(folder: Path, number: int) -> float:
    """Return the trials per second, from the first start to the last end."""
    query = "SELECT count(*), min(start_time), max(end_time) FROM trials WHERE status = 'SUCCEEDED'"
    [(succeeded, first, last)] = rows_of(folder, query)
    if succeeded != number:
        raise SystemExit(f"{succeeded} of {number} trials succeeded")
    return number / (last - first)
