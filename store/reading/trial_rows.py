"""Trials as plain dicts: a page of the table, and all about one of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .database import Database
from .plain import parsed, plain
from .trial_query import LAST, TrialQuery

__all__ = ["TrialPage", "read_trial", "read_trials", "rows_by_number", "sequence_id_of"]

_LIST = (
    "sequence_id",
    "trial_id",
    "status",
    "record",
    "created",
    "start_time",
    "end_time",
    "final",
    "reason",
    "kind",
    "exit_code",
    "attempt",
    "agent",
    "next_sequence",
)
_DETAIL = (
    *_LIST,
    "error",
    "gpus",
    "pid",
    "budget",
    "checkpoint",
    "failed",
    "revivals",
    "slot",
    "finals",
)
_ATTEMPT = ("attempt", "outcome", "agent", "start_time", "end_time", "reason", "kind", "exit_code", "error")


@dataclass(frozen=True, slots=True)
class TrialPage:
    """Some trials, and how many there are that the filters let through."""

    trials: list[dict[str, Any]]
    total: int


def read_trials(db: Database, query: TrialQuery) -> TrialPage:
    """The page of trials that a query asks for; raises `QueryError`."""
    where, filtered = query.where()
    order, sorted_by = query.order()
    page, bounds = query.page()
    with db.connection() as connection:
        (total,) = connection.execute(f"SELECT count(*) FROM trials t WHERE {where}", filtered).fetchone()
        numbers = connection.execute(
            f"SELECT t.sequence_id FROM trials t WHERE {where} ORDER BY {order} {page}",
            [*filtered, *sorted_by, *bounds],
        ).fetchall()
        found = _rows(connection, _LIST, [number for (number,) in numbers])
    return TrialPage(found, total)


def rows_by_number(db: Database, sequence_ids: Sequence[int]) -> list[dict[str, Any]]:
    """The trials with these numbers, in this order, as in a page of the table."""
    with db.connection() as connection:
        return _rows(connection, _LIST, sequence_ids)


def read_trial(db: Database, sequence_id: int) -> dict[str, Any]:
    """All about one trial; raises `LookupError` if there is none."""
    with db.connection() as connection:
        found = _rows(connection, _DETAIL, [sequence_id])
        if not found:
            raise LookupError(f"there is no trial {sequence_id}")
        attempts = connection.execute(
            f"SELECT {', '.join(_ATTEMPT)} FROM attempts WHERE sequence_id = ? ORDER BY attempt",
            (sequence_id,),
        ).fetchall()
    return {**found[0], "earlier_attempts": [dict(zip(_ATTEMPT, row, strict=True)) for row in attempts]}


def sequence_id_of(db: Database, name: int | str) -> int:
    """The number of a trial that is named by its number or its id; raises `LookupError`."""
    text = str(name)
    if text.isdecimal() and len(text) <= 18:
        row = db.row("SELECT sequence_id FROM trials WHERE sequence_id = ?", (int(text),))
    else:
        row = db.row("SELECT sequence_id FROM trials WHERE trial_id = ?", (text,))
    if row is None:
        raise LookupError(f"there is no trial '{text[:50]}': give a trial's number or its id")
    return row[0]


def _rows(connection: Any, columns: Sequence[str], sequence_ids: Sequence[int]) -> list[dict[str, Any]]:
    """Trials by their numbers, in that order; a few hundred at a time, so that no statement grows too long."""
    found: dict[int, dict[str, Any]] = {}
    for begin in range(0, len(sequence_ids), 500):
        listed = ", ".join(map(str, sequence_ids[begin : begin + 500]))
        values = dict[int, dict[str, float]]()
        for sequence_id, name, value in connection.execute(
            f"SELECT sequence_id, name, value FROM objective_values WHERE sequence_id IN ({listed})"
        ):
            values.setdefault(sequence_id, {})[name] = value
        selected = ", ".join(f"t.{name}" for name in columns)
        for row in connection.execute(
            f"SELECT {selected}, ({LAST}) FROM trials t WHERE t.sequence_id IN ({listed})"
        ):
            trial = _trial(dict(zip(columns, row, strict=False)), values.get(row[0], {}))
            found[row[0]] = {**trial, "last": plain(row[-1])}
    return [found[number] for number in sequence_ids if number in found]


def _trial(row: dict[str, Any], values: dict[str, float]) -> dict[str, Any]:
    record = json.loads(row.pop("record"))
    row["parameters"] = plain(record["parameters"])
    row["parameter_source"] = record.get("parameter_source")
    row["final"] = parsed(row["final"])
    row["values"] = plain(values)
    row["value"] = plain(values.get("default"))
    row["intermediate_results"] = row.pop("next_sequence")
    begin, end = row["start_time"], row["end_time"]
    row["duration"] = end - begin if begin is not None and end is not None else None
    for name in ("gpus", "failed"):
        if name in row:
            row[name] = parsed(row[name])
    return row
