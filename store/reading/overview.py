"""An experiment as a whole: status, counts, times and limits."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ...runner import ExperimentStatus
from ..folder import ExperimentFolder
from ..store import StoreError
from .database import Database
from .plain import plain

__all__ = ["objectives_of", "read_config", "read_summary"]

_COLUMNS = ("id", "name", "status", "reason", "error", "created", "end_time", "run_time")
_LIMITS = ("maxTrialNumber", "maxExperimentDuration", "maxTrialDuration", "trialConcurrency")
# Over how long the present rate of trials is measured: seconds.
_RECENTLY = 60.0


def read_config(db: Database) -> dict[str, Any]:
    """The stored configuration; raises `StoreError` if there is none."""
    row = db.row("SELECT config FROM experiment")
    if row is None:
        raise StoreError(f"{db.path} holds no experiment: it was never started")
    return plain(json.loads(row[0]))


def objectives_of(config: Mapping[str, Any]) -> list[dict[str, str]]:
    """What is optimised.

    >>> objectives_of({"objectives": [{"direction": "maximize"}]})
    [{'name': 'default', 'direction': 'maximize'}]
    """
    found = config.get("objectives") or [{}]
    return [
        {
            "name": item.get("name") or "default",
            "direction": "maximize" if item.get("direction") == "maximize" else "minimize",
        }
        for item in found
    ]


def read_summary(db: Database, folder: ExperimentFolder) -> dict[str, Any]:
    """How an experiment stands; `is_running` says that a manager lives, `remaining` is an estimate in seconds."""
    row = db.row(f"SELECT {', '.join(_COLUMNS)} FROM experiment")
    if row is None:
        raise StoreError(f"{db.path} holds no experiment: it was never started")
    found = dict(zip(_COLUMNS, row, strict=True))
    config = read_config(db)
    is_running = not ExperimentStatus(found["status"]).is_final and folder.manager() is not None
    counted = _counted(db, found["end_time"] or time.time())
    limits = {_snake(name): config.get(name) for name in _LIMITS}
    return {
        **found,
        "folder": str(folder.path),
        "is_running": is_running,
        **counted,
        "limits": limits,
        "objectives": objectives_of(config),
        "remaining": _remaining(counted, limits, found["run_time"]) if is_running else None,
    }


def _counted(db: Database, now: float) -> dict[str, Any]:
    counts, results = dict[str, int](), 0
    for status, count, reported in db.rows(
        "SELECT status, count(*), sum(next_sequence) FROM trials GROUP BY status"
    ):
        counts[status] = count
        results += reported or 0
    ended = db.row("SELECT count(*), min(end_time) FROM trials WHERE end_time > ?", (now - _RECENTLY,))
    count, first = ended or (0, None)
    span = min(_RECENTLY, max(1e-3, now - first)) if first is not None else _RECENTLY
    return {
        "counts": counts,
        "trials": sum(counts.values()),
        "intermediate_results": results,
        "trials_per_minute": round(60.0 * count / span, 3) if count > 1 else float(count),
    }


def _remaining(counted: Mapping[str, Any], limits: Mapping[str, Any], run_time: float) -> float | None:
    """Seconds until the first of the limits is reached, at the present rate; None when nothing says so."""
    estimates = []
    rate = counted["trials_per_minute"] / 60.0
    open_trials = sum(counted["counts"].get(status, 0) for status in ("WAITING", "RUNNING", "PAUSED"))
    if limits["max_trial_number"] is not None and rate > 0:
        left = max(0, limits["max_trial_number"] - counted["trials"]) + open_trials
        estimates.append(left / rate)
    if limits["max_experiment_duration"] is not None:
        estimates.append(max(0.0, limits["max_experiment_duration"] - run_time))
    return min(estimates, default=None)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
