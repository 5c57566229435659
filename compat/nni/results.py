"""Reads the results of an experiment that NNI 1 to 3 ran, from `db/nni.sqlite` in its folder."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...protocol import Config, Json, JsonObject, Parameters

_log = logging.getLogger(__name__)

TUNER = "NNI"

# The direction of NNI's tuners and advisors without `optimize_mode`; GridSearch, Random and Batch have none.
_DIRECTIONS = {
    **dict.fromkeys(("tpe", "tpe_legacy", "anneal"), "minimize"),
    **dict.fromkeys(("evolution", "gp", "metis", "smac", "dngo", "bohb", "hyperband", "pbt"), "maximize"),
}

_EVENTS = "SELECT * FROM TrialJobEvent WHERE trialJobId != '' ORDER BY rowid"
_METRICS = "SELECT * FROM MetricData WHERE type IN ('PERIODICAL', 'FINAL') ORDER BY rowid"
_PROFILE = "SELECT * FROM ExperimentProfile ORDER BY revision DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class OldEvent:
    """What happened to a trial; the first has its parameter record as `data`."""

    name: str
    time: float
    data: Any
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OldMetric:
    """A result as NNI stored it: number and text may be damaged."""

    kind: str
    sequence: Any
    data: Any
    time: float
    parameter_id: str


@dataclass(kw_only=True, slots=True)
class OldExperiment:
    """A database of NNI: the last profile, and by trial events, results and the record; times are in seconds.

    `notes` says what cannot be read, and is left out for that reason.
    """

    id: str
    config: Config
    start_time: float
    end_time: float
    run_time: float
    events: dict[str, list[OldEvent]] = field(default_factory=dict)
    metrics: dict[str, list[OldMetric]] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_results(path: Path) -> Path | None:
    """Return the database in the folder of an NNI experiment; None if there is none."""
    database = path / "db" / "nni.sqlite"
    return database if database.is_file() else None


def read_experiment(database: Path) -> OldExperiment:
    """Return what NNI stored; raise `sqlite3.Error` or ValueError for a database that is not NNI's."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        db.text_factory = _text  # one text that is not UTF-8 would end the query
        profile = dict(db.execute(_PROFILE).fetchone() or {})
        old = OldExperiment(
            id=str(profile.get("id") or ""),
            config=_mapping(profile.get("params")),
            start_time=_seconds(profile.get("startTime")),
            end_time=_seconds(profile.get("endTime")),
            run_time=_number(profile.get("execDuration")),
        )
        if not old.config:
            old.notes.append("the config: it is missing, or not JSON")
        for row in map(dict, db.execute(_EVENTS)):
            message = str(row.get("message") or "")
            event = OldEvent(row["event"], _seconds(row["timestamp"]), row["data"], message)
            old.events.setdefault(row["trialJobId"], []).append(event)
        for row in map(dict, db.execute(_METRICS)):
            metric = OldMetric(
                kind=row["type"],
                sequence=row["sequence"],
                data=row["data"],
                time=_seconds(row["timestamp"]),
                parameter_id=str(row["parameterId"]),
            )
            old.metrics.setdefault(row["trialJobId"], []).append(metric)
    old.records = _records(old)
    return old


def read_results(database: Path) -> Iterator[tuple[Parameters, Json, str | None]]:
    """Yield parameters, first final result and direction (None if the config has none) of the succeeded trials.

    Raise `sqlite3.Error` or ValueError for a database that is not NNI's.
    """
    old = read_experiment(database)
    direction = direction_of(old.config)
    for trial, metrics in old.metrics.items():
        finals = (value for kind, _, value, _ in results_of(old, trial, metrics) if kind == "FINAL")
        final = next(finals, None)
        events = old.events.get(trial)
        if final is not None and events and events[-1].name == "SUCCEEDED" and trial in old.records:
            parameters = json.loads(old.records[trial]).get("parameters")
            if isinstance(parameters, dict):
                yield parameters, final, direction
    for note in old.notes:
        _log.warning("%s: left out: %s", database, note)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _mapping(text: Any) -> JsonObject:
    """Return the object in a JSON text; an empty one if there is none."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _records(old: OldExperiment) -> dict[str, str]:
    """Return the parameter record with which each trial ran.

    NNI 3 hands out parameters as trials ask for them, so those that start together may have run with each other's; the
    events name the parameters that were meant for them, the results those that they had. A trial without results has
    what the others left. Ids are not unique: a resumed experiment counts from 0 again, so the nearest one is meant.
    """
    meant = {
        name: record
        for name, events in old.events.items()
        if (record := next((event.data for event in events if _mapping(event.data)), None)) is not None
    }
    old.notes += [
        f"trial {name}: no parameters are stored with it" for name in old.events.keys() - meant.keys()
    ]
    names, ids = list(meant), [str(json.loads(record).get("parameter_id")) for record in meant.values()]
    source = {number: _source(number, ids, old.metrics.get(name, ())) for number, name in enumerate(names)}
    taken_by = {other: number for number, other in source.items() if other is not None}
    records: dict[str, str] = {}
    for number, name in enumerate(names):
        other = source[number]
        if other is None:
            other = number
            while other in taken_by:
                other = taken_by[other]
        records[name] = meant[names[other]]
    return records


def _source(number: int, ids: list[str], metrics: Sequence[OldMetric]) -> int | None:
    """Return the number of the trial whose record a trial ran with; None if no result says it."""
    if not metrics:
        return None
    named = metrics[0].parameter_id
    if named == ids[number]:
        return number
    others = [other for other, known in enumerate(ids) if known == named]
    return min(others, key=lambda other: abs(other - number), default=number)


def results_of(
    old: OldExperiment, trial: str, metrics: Sequence[OldMetric]
) -> Iterator[tuple[str, int, Json, float]]:
    """Yield kind, number, value and time of each result of a trial once; note those that cannot be read."""
    seen = set[tuple[str, int]]()
    wrong = 0
    for metric in metrics:
        try:
            kind, number = metric.kind, int(metric.sequence)
            value = json.loads(metric.data)
            value = json.loads(value) if isinstance(value, str) else value  # NNI writes JSON in JSON
        except (ValueError, TypeError, OverflowError, RecursionError):
            wrong += 1
            continue
        if (kind, number) not in seen:
            seen.add((kind, number))
            yield kind, number, value, metric.time
    if wrong:
        old.notes.append(f"trial {trial}: {wrong} {'results' if wrong > 1 else 'result'} that cannot be read")


def _seconds(milliseconds: Any) -> float:
    """Return a time of NNI in seconds; 0 if it is missing or not a number."""
    return _number(milliseconds) / 1000


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def section_of(config: Config, name: str) -> JsonObject:
    """Return a section of a config; an empty one if it is missing or malformed."""
    section = config.get(name)
    return section if isinstance(section, dict) else {}


def direction_of(config: Config) -> str | None:
    """Return the direction in a config of any version, or the default of its algorithm; None if it has none."""
    for kind in ("tuner", "advisor", "assessor"):
        section = section_of(config, kind)
        mode = section_of(section, "classArgs").get("optimize_mode")
        name = str(section.get("name") or section.get(f"builtin{kind.title()}Name"))
        direction = mode if mode in ("minimize", "maximize") else _DIRECTIONS.get(_folded(name))
        if direction is not None:
            return direction
    return None


def _folded(name: str) -> str:
    return name.lower().removesuffix("tuner")
