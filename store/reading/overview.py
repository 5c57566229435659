"""An experiment as a whole: status, counts, times and limits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ...protocol import Json, camel_case
from ...runner import ExperimentStatus, Limits, TrialStatus
from ..errors import damaged, empty, understood
from ..folder import ExperimentFolder
from ..manager_process import has_ended
from .best_trials import closest_to_limits, limits_of, read_best
from .database import Database
from .families import read_outcomes
from .json_values import parsed
from .pace import Pace, read_best_intermediate, read_pace
from .read_model import StoredExperiment, Summary, TrialRow
from .trial_rows import read_details

_LIMITS = tuple(one.name for one in fields(Limits) if one.default is None or type(one.default) is int)
# The current rate of trials is measured over this many seconds.
_RECENTLY = 60.0
_LAST_TIME = 253402214400.0  # the last day of year 9999


def read_experiment(db: Database) -> StoredExperiment:
    """Return the row of the experiment; raise `StoreError` if there is none."""
    names = [field.name for field in fields(StoredExperiment)]
    row = db.row(f"SELECT {', '.join(names)} FROM experiment")
    if row is None:
        raise empty(db.path)
    stored = dict(zip(names, row, strict=True))
    with understood(db.path, "status"):
        ExperimentStatus(stored["status"])
    with understood(db.path, "times"):
        for name in ("created", "run_time", *(["end_time"] if stored["end_time"] is not None else [])):
            stored[name] = _time(stored[name])
    return StoredExperiment(**stored)


def _time(value: Any) -> float:
    """Return a time or a duration that can be shown."""
    if not abs(seconds := float(value)) < _LAST_TIME:
        raise ValueError(f"{value!r} is not a time")
    return seconds


def read_summary(db: Database, folder: ExperimentFolder) -> Summary:
    """Return the state of an experiment."""
    experiment, config = read_experiment(db), db.config()
    _refuse_other_types(db)
    is_final, is_search = ExperimentStatus(experiment.status).is_final, folder.is_search(config)
    is_running = not is_final and folder.manager() is not None
    counts, results = _counts(db)
    now = time.time()
    rate = _trials_per_minute(db, experiment.end_time or now)
    with understood(db.path, "limits"):
        limits = {name: _limit(config.get(camel_case(name))) for name in _LIMITS}
    best, outcome_limits, goals = read_best(db, 1), limits_of(db), db.goals()
    has_program = (not is_final and _has_program(db)) if is_search else None
    is_reporting = (is_running or bool(has_program)) and counts.get("RUNNING", 0) > 0
    with understood(db.path, "trials"):
        pace = read_pace(db, now) if is_reporting else Pace()
    is_first = is_reporting and not counts.get("SUCCEEDED") and len(goals) == 1
    return Summary(
        # The row of a copied or renamed folder has the old id.
        **{**asdict(experiment), "id": folder.experiment_id},
        folder=str(folder.path),
        is_running=is_running,
        is_search=is_search,
        has_program=has_program,
        counts=counts,
        trials=sum(counts.values()),
        intermediate_results=results,
        trials_per_minute=rate,
        results_per_minute=round(pace.results_per_minute, 3),
        limits=limits,
        objectives=goals,
        outcome_limits=outcome_limits,
        defaults=_defaults(db, config),
        best=best,
        best_intermediate=read_best_intermediate(db) if is_first else None,
        closest=closest_to_limits(db) if outcome_limits and not best else None,
        remaining=_remaining(counts, rate, pace, limits, experiment.run_time) if is_running else None,
    )


def _defaults(db: Database, config: Mapping[str, Json]) -> TrialRow | None:
    """Return the trial of the defaults, None without defaults or before it was made: it is the first."""
    if config.get("defaults") is None:
        return None
    first = next(iter(read_outcomes(db, [0])), None)
    return first if first is not None and first.parameter_source == "defaults" else None


def _has_program(db: Database) -> bool:
    """Return whether a living process has begun a trial of a search that has not ended."""
    with understood(db.path, "trials"):
        begun = db.rows("SELECT pid, start_time FROM trials WHERE slot IS NOT NULL AND pid IS NOT NULL")
        return any(not has_ended(pid, start or 0.0) for pid, start in begun)


def read_everything(db: Database) -> None:
    """Read all trials, in portions, and check all results; raise `StoreError` for what cannot be understood."""
    for _ in read_details(db):
        pass
    with understood(db.path, "metrics"):
        doubtful = "typeof(value) <> 'text' OR NOT json_valid(value)"  # SQLite knows no NaN and no infinity
        for (value,) in db.rows(f"SELECT value FROM metrics WHERE {doubtful}"):
            parsed(value)
    if (found := db.row("PRAGMA quick_check(1)")) != ("ok",):  # what the manager alone reads, too
        raise damaged(db.path, " ".join(map(str, found or ())))


def _refuse_other_types(db: Database) -> None:
    """Raise `StoreError` for a column with a value of the wrong type, which SQLite stores without complaint."""
    for table, column, types in (("trials", "record", "'text'"), ("objective_values", "value", "'real'")):
        wrong = f"SELECT sequence_id, typeof({column}) FROM {table} WHERE typeof({column}) <> {types} LIMIT 1"
        if (found := db.row(wrong)) is not None:
            raise damaged(db.path, f"{table}.{column} of trial {found[0]} is a {found[1]}")


def _limit(value: object) -> float | None:
    if value is not None and not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return value


def _counts(db: Database) -> tuple[dict[str, int], int]:
    """Return how many trials have each status, and how many intermediate results there are."""
    counts, results = dict[str, int](), 0
    with understood(db.path, "trials"):
        for status, count, reported in db.rows(
            "SELECT status, count(*), sum(next_sequence) FROM trials GROUP BY status"
        ):
            counts[TrialStatus(status).value] = count
            results += int(reported or 0)
    return counts, results


def _trials_per_minute(db: Database, now: float) -> float:
    """Return the current rate at which trials end."""
    ended = db.row("SELECT count(*), min(end_time) FROM trials WHERE end_time > ?", (now - _RECENTLY,))
    count, first = ended or (0, None)
    span = min(_RECENTLY, max(1e-3, now - first)) if first is not None else _RECENTLY
    return round(60.0 * count / span, 3) if count > 1 else float(count)


def _remaining(
    counts: Mapping[str, int],
    trials_per_minute: float,
    pace: Pace,
    limits: Mapping[str, float | None],
    run_time: float,
) -> float | None:
    """Return the seconds until the first of the limits is reached at the current rate; None if that is unknown."""
    estimates = list[float]()
    rate, most, longest = (
        trials_per_minute / 60.0,
        limits["max_trial_number"],
        limits["max_experiment_duration"],
    )
    if most is not None:
        others = max(0, int(most) - sum(counts.values())) + counts.get("WAITING", 0) + counts.get("PAUSED", 0)
        by_pace = pace.remaining(others)
        if by_pace is not None and (not rate or (pace.new or 0.0) > _RECENTLY):
            estimates.append(by_pace)
        elif rate:
            estimates.append((others + counts.get("RUNNING", 0)) / rate)
    if longest is not None:
        estimates.append(max(0.0, longest - run_time))
    return min(estimates, default=None)
