"""Reads the results in the folder of an NNI experiment: `db/nni.sqlite`, of NNI 1 to 3."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["OldExperiment", "decoded", "direction_of", "nni_database", "read_experiment", "read_nni"]

_EVENTS = "SELECT * FROM TrialJobEvent WHERE trialJobId != '' ORDER BY rowid"
_METRICS = "SELECT * FROM MetricData WHERE type IN ('PERIODICAL', 'FINAL') ORDER BY rowid"
_PROFILE = "SELECT * FROM ExperimentProfile ORDER BY revision DESC LIMIT 1"


@dataclass(kw_only=True, slots=True)
class OldExperiment:
    """The rows of a database of NNI: the last profile with its config, and by trial events, results and the record."""

    profile: Mapping[str, Any]
    params: Mapping[str, Any]
    events: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    metrics: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)


def nni_database(path: Path) -> Path | None:
    """Return the database in the folder of an NNI experiment; None if there is none."""
    found = path / "db" / "nni.sqlite"
    return found if found.is_file() else None


def read_experiment(database: Path) -> OldExperiment:
    """Return what NNI stored; raise `sqlite3.Error` or ValueError for a database that is not NNI's."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        profile = dict(db.execute(_PROFILE).fetchone() or {})
        old = OldExperiment(profile=profile, params=json.loads(profile["params"]))
        for event in db.execute(_EVENTS):
            old.events.setdefault(event["trialJobId"], []).append(dict(event))
        for metric in db.execute(_METRICS):
            old.metrics.setdefault(metric["trialJobId"], []).append(dict(metric))
    old.records = _records(old)
    return old


def read_nni(database: Path) -> Iterator[tuple[dict[str, Any], Any, str | None]]:
    """Yield parameters, first final result and direction (None if the config has none) of the succeeded trials.

    Raise `sqlite3.Error` or ValueError for a database that is not NNI's.
    """
    old = read_experiment(database)
    direction = direction_of(old.params)
    for trial, metrics in old.metrics.items():
        final = next((metric["data"] for metric in metrics if metric["type"] == "FINAL"), None)
        has_succeeded = old.events.get(trial, [{"event": ""}])[-1]["event"] == "SUCCEEDED"
        if final is not None and has_succeeded and trial in old.records:
            parameters = json.loads(old.records[trial])["parameters"]
            if isinstance(parameters, dict):
                yield parameters, decoded(final), direction


def _records(old: OldExperiment) -> dict[str, str]:
    """Return the parameter record with which each trial ran.

    NNI 3 hands out parameters as trials ask for them, so those that start together may have run with each other's; the
    events name the parameters that were meant for them, the results those that they had. A trial without results has
    what the others left. Ids are not unique: a resumed experiment counts from 0 again, so the nearest one is meant.
    """
    meant = {
        name: record
        for name, events in old.events.items()
        if (record := next((event["data"] for event in events if event["data"]), None)) is not None
    }
    names, ids = list(meant), [str(json.loads(record).get("parameter_id")) for record in meant.values()]
    source = {number: _source(number, ids, old.metrics.get(name)) for number, name in enumerate(names)}
    taken_by = {other: number for number, other in source.items() if other is not None}
    records: dict[str, str] = {}
    for number, name in enumerate(names):
        found = source[number]
        if found is None:
            found = number
            while found in taken_by:
                found = taken_by[found]
        records[name] = meant[names[found]]
    return records


def _source(number: int, ids: list[str], metrics: list[Mapping[str, Any]] | None) -> int | None:
    """Return the number of the trial whose record a trial ran with; None if no result says it."""
    if not metrics:
        return None
    named = str(metrics[0]["parameterId"])
    if named == ids[number]:
        return number
    others = [other for other, known in enumerate(ids) if known == named]
    return min(others, key=lambda other: abs(other - number), default=number)


def decoded(data: str) -> Any:
    """Return a result, which NNI writes as JSON in JSON."""
    value = json.loads(data)
    return json.loads(value) if isinstance(value, str) else value


def direction_of(config: Mapping[str, Any]) -> str | None:
    """Return the direction of the tuner in a config of any version."""
    section = config.get("tuner") or config.get("advisor") or {}
    arguments = section.get("classArgs") or {}
    return arguments.get("optimize_mode")
