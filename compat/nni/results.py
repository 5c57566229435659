"""Reads the results of an experiment that NNI 1 to 3 ran, from `db/nni.sqlite` in its folder."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...protocol import Config, Json

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


@dataclass(kw_only=True, slots=True)
class OldExperiment:
    """The rows of a database of NNI: the last profile with its config, and by trial events, results and the record.

    `notes` says what cannot be read, and is left out for that reason.
    """

    profile: Mapping[str, Any]
    params: Mapping[str, Json]
    events: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    metrics: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    records: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find_results(path: Path) -> Path | None:
    """Return the database in the folder of an NNI experiment; None if there is none."""
    found = path / "db" / "nni.sqlite"
    return found if found.is_file() else None


def read_experiment(database: Path) -> OldExperiment:
    """Return what NNI stored; raise `sqlite3.Error` or ValueError for a database that is not NNI's."""
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        db.text_factory = _text  # one text that is not UTF-8 would end the query
        profile = dict(db.execute(_PROFILE).fetchone() or {})
        old = OldExperiment(profile=profile, params=_mapping(profile.get("params")))
        if not old.params:
            old.notes.append("the config: it is missing, or not JSON")
        for event in db.execute(_EVENTS):
            old.events.setdefault(event["trialJobId"], []).append(dict(event))
        for metric in db.execute(_METRICS):
            old.metrics.setdefault(metric["trialJobId"], []).append(dict(metric))
    old.records = _records(old)
    return old


def read_results(database: Path) -> Iterator[tuple[dict[str, Any], Any, str | None]]:
    """Yield parameters, first final result and direction (None if the config has none) of the succeeded trials.

    Raise `sqlite3.Error` or ValueError for a database that is not NNI's.
    """
    old = read_experiment(database)
    direction = direction_of(old.params)
    for trial, metrics in old.metrics.items():
        final = next(
            (value for kind, _, value, _ in results_of(old, trial, metrics) if kind == "FINAL"), None
        )
        has_succeeded = old.events.get(trial, [{"event": ""}])[-1]["event"] == "SUCCEEDED"
        if final is not None and has_succeeded and trial in old.records:
            parameters = json.loads(old.records[trial]).get("parameters")
            if isinstance(parameters, dict):
                yield parameters, final, direction
    for note in old.notes:
        _log.warning("%s: left out: %s", database, note)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _mapping(text: Any) -> dict[str, Any]:
    """Return the object in a JSON text; an empty one if there is none."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _records(old: OldExperiment) -> dict[str, str]:
    """Return the parameter record with which each trial ran.

    NNI 3 hands out parameters as trials ask for them, so those that start together may have run with each other's; the
    events name the parameters that were meant for them, the results those that they had. A trial without results has
    what the others left. Ids are not unique: a resumed experiment counts from 0 again, so the nearest one is meant.
    """
    meant = {
        name: record
        for name, events in old.events.items()
        if (record := next((event["data"] for event in events if _mapping(event["data"])), None)) is not None
    }
    old.notes += [
        f"trial {name}: no parameters are stored with it" for name in old.events.keys() - meant.keys()
    ]
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


def results_of(
    old: OldExperiment, trial: str, metrics: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, int, Any, float]]:
    """Yield kind, number, value and time of each result of a trial once; note those that cannot be read."""
    seen = set[tuple[str, int]]()
    wrong = 0
    for metric in metrics:
        try:
            kind, number = str(metric["type"]), int(metric["sequence"])
            value = json.loads(metric["data"])
            value = json.loads(value) if isinstance(value, str) else value  # NNI writes JSON in JSON
        except (ValueError, TypeError, OverflowError, RecursionError):
            wrong += 1
            continue
        if (kind, number) not in seen:
            seen.add((kind, number))
            yield kind, number, value, seconds(metric["timestamp"])
    if wrong:
        old.notes.append(f"trial {trial}: {wrong} {'results' if wrong > 1 else 'result'} that cannot be read")


def seconds(milliseconds: Any) -> float:
    """Return a time of NNI in seconds; 0 if it is missing or not a number."""
    return milliseconds / 1000 if isinstance(milliseconds, int | float) else 0.0


def section_of(config: Config, name: str) -> dict[str, Any]:
    """Return a section of a config; an empty one if it is missing or malformed."""
    section = config.get(name)
    return section if isinstance(section, dict) else {}


def direction_of(config: Config) -> str | None:
    """Return the direction in a config of any version, or the default of its algorithm; None if it has none."""
    for kind in ("tuner", "advisor", "assessor"):
        section = section_of(config, kind)
        mode = section_of(section, "classArgs").get("optimize_mode")
        name = str(section.get("name") or section.get(f"builtin{kind.title()}Name"))
        found = mode if mode in ("minimize", "maximize") else _DIRECTIONS.get(_folded(name))
        if found is not None:
            return found
    return None


def _folded(name: str) -> str:
    return name.lower().removesuffix("tuner")
