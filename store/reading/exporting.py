"""All trials of an experiment as text, a portion at a time, however slowly they are taken.

JSON: `{"experiment": {...}, "trials": [...]}` with the intermediate results of each; CSV: a head and a row a trial,
with nested parameters and results flattened by dots. NaN and infinities are null or nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .plain import parsed, to_json
from .trial_query import TrialQuery
from .words import flat

if TYPE_CHECKING:
    from .view import ExperimentView

__all__ = ["csv_lines", "json_lines"]

_PORTION = 500
_FIXED = ("sequence_id", "id", "status", "start_time", "end_time")
_HEAD = ("id", "name", "status", "reason", "folder", "created", "end_time", "run_time")
_RESULTS = (
    "SELECT sequence_id, value FROM metrics WHERE sequence_id BETWEEN ? AND ? AND kind = 'PERIODICAL'"
    " AND NOT superseded ORDER BY sequence_id, sequence, attempt"
)


def json_lines(view: ExperimentView) -> Iterator[bytes]:
    """The experiment and its trials as one JSON object."""
    summary = view.summary()
    head = {name: summary[name] for name in _HEAD}
    yield b'{"experiment":' + to_json({**head, "config": view.config()}) + b',"trials":['
    between = b"\n"
    for portion in _portions(view):
        results = dict[int, list[Any]]()
        first, last = portion[0]["sequence_id"], portion[-1]["sequence_id"]
        for sequence_id, value in view.database.rows(_RESULTS, (first, last)):
            results.setdefault(sequence_id, []).append(parsed(value))
        for trial in portion:
            yield between + to_json(_object(trial, results.get(trial["sequence_id"], [])))
            between = b",\n"
    yield b"\n]}\n"


def csv_lines(view: ExperimentView) -> Iterator[bytes]:
    """A head and one row a trial; a parameter that is named like another column gets the prefix `parameters.`"""
    parameters, finals = _columns(view)
    taken = {*_FIXED, "reason", *finals}
    head = [f"parameters.{name}" if name in taken else name for name in parameters]
    yield _csv([[*_FIXED, *head, *finals, "reason"]])
    for portion in _portions(view):
        yield _csv([_row(trial, parameters, finals) for trial in portion])


def _portions(view: ExperimentView) -> Iterator[list[dict[str, Any]]]:
    """The trials by their numbers; those that come meanwhile are told, too."""
    offset = 0
    while portion := view.trials(TrialQuery(offset=offset, limit=_PORTION)).trials:
        yield portion
        offset += len(portion)


def _object(trial: dict[str, Any], intermediate: list[Any]) -> dict[str, Any]:
    return {
        "id": trial["trial_id"],
        "sequence_id": trial["sequence_id"],
        "status": trial["status"],
        "parameters": trial["parameters"],
        "intermediate": intermediate,
        "final": trial["final"],
        "start_time": trial["start_time"],
        "end_time": trial["end_time"],
        "reason": trial["reason"],
        "kind": trial["kind"],
        "exit_code": trial["exit_code"],
        "attempts": trial["attempt"],
    }


def _columns(view: ExperimentView) -> tuple[list[str], list[str]]:
    parameters, finals = dict[str, None](), dict[str, None]()
    for portion in _portions(view):
        for trial in portion:
            parameters.update(dict.fromkeys(flat(trial["parameters"])))
            finals.update(dict.fromkeys(_flat_final(trial)))
    return list(parameters), list(finals)


def _row(trial: dict[str, Any], parameters: list[str], finals: list[str]) -> list[Any]:
    fixed = [trial["sequence_id"], trial["trial_id"], trial["status"], trial["start_time"], trial["end_time"]]
    values, results = flat(trial["parameters"]), _flat_final(trial)
    return [*fixed, *map(values.get, parameters), *map(results.get, finals), trial["reason"]]


def _flat_final(trial: dict[str, Any]) -> dict[str, Any]:
    return {} if trial["final"] is None else flat(trial["final"], "final")


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
