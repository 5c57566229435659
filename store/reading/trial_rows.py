"""Trials: a page of the table, and all about one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from ...runner import TrialStatus
from ..errors import understood
from .database import Database
from .field_sql import last_expression
from .json_values import parsed
from .read_model import Attempt, TrialDetail, TrialRow
from .trial_columns import COLUMNS
from .trial_query import TrialQuery

# What is read by SQL, by name: the number first. The rest of a row follows from it.
_LISTED = {column.name: column.sql for column in COLUMNS if column.sql and not column.in_record}
_LISTED["record"] = "t.record"
_DETAILS = {
    field.name: f"t.{field.name}"
    for field in fields(TrialDetail)[len(fields(TrialRow)) :]
    if field.name != "earlier_attempts"
}
_IN_RECORD = tuple(column.name for column in COLUMNS if column.in_record)
_JSON = (*(column.name for column in COLUMNS if column.kind == "json" and column.sql), "gpus", "failed")
_FIRST_WITH_EXPORTS, _FIRST_WITH_USER_RETRIES = 3, 4  # versions of the tables

_Row = TypeVar("_Row", bound=TrialRow)


@dataclass(frozen=True, slots=True)
class TrialPage:
    """A page of trials, and the number of all trials that match."""

    trials: list[TrialRow]
    total: int


def read_trials(db: Database, query: TrialQuery) -> TrialPage:
    """Return the page of trials that a query asks for; raise `QueryError`."""
    main = db.main_objective()
    where, filtered = query.where(main)
    order, sorted_by = query.order(db.objectives())
    page, bounds = query.page()
    with db.connection() as connection:
        (total,) = connection.execute(f"SELECT count(*) FROM trials t WHERE {where}", filtered).fetchone()
        numbers = connection.execute(
            f"SELECT t.sequence_id FROM trials t WHERE {where} ORDER BY {order} {page}",
            [*filtered, *sorted_by, *bounds],
        ).fetchall()
        return TrialPage(_rows(db, connection, TrialRow, [number for (number,) in numbers]), total)


def read_portions(db: Database) -> Iterator[list[TrialRow]]:
    """Yield all trials in order of their numbers, those made meanwhile included, some hundred at a time."""
    for numbers in db.portions("SELECT sequence_id FROM trials"):
        yield rows_by_number(db, [number for (number,) in numbers])


def read_details(db: Database) -> Iterator[TrialDetail]:
    """Yield all about each trial, but for its earlier attempts, as `read_portions` does."""
    for numbers in db.portions("SELECT sequence_id FROM trials"):
        with db.connection() as connection:
            portion = _rows(db, connection, TrialDetail, [number for (number,) in numbers])
        yield from portion


def read_outline(db: Database, metrics: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    """Yield number, status, end and a value of each metric of all trials, some hundred at a time."""
    value = "(SELECT value FROM objective_values WHERE sequence_id = trials.sequence_id AND name = ?)"
    columns = ", ".join(["sequence_id", "status", "end_time", *[value] * len(metrics)])
    return db.portions(f"SELECT {columns} FROM trials", metrics)


def rows_by_number(db: Database, sequence_ids: Sequence[int]) -> list[TrialRow]:
    """Return the trials with these numbers, in this order."""
    with db.connection() as connection:
        return _rows(db, connection, TrialRow, sequence_ids)


def read_trial(db: Database, sequence_id: int) -> TrialDetail:
    """Return all about one trial; raise `LookupError` if there is none."""
    names = [field.name for field in fields(Attempt)]
    with db.connection() as connection:
        trials = _rows(db, connection, TrialDetail, [sequence_id])
        if not trials:
            raise LookupError(f"there is no trial {sequence_id}")
        attempts = connection.execute(
            f"SELECT {', '.join(names)} FROM attempts WHERE sequence_id = ? ORDER BY attempt", (sequence_id,)
        ).fetchall()
    earlier = [Attempt(**dict(zip(names, row, strict=True))) for row in attempts]
    return replace(trials[0], earlier_attempts=earlier)


def read_record(db: Database, sequence_id: int) -> str:
    """Return the parameter record of a trial, exactly as the tuner made it."""
    row = db.row("SELECT record FROM trials WHERE sequence_id = ?", (sequence_id,))
    if row is None:
        raise LookupError(f"there is no trial {sequence_id}")
    return row[0]


def read_exports(db: Database, sequence_id: int) -> dict[str, str]:
    """Return what a trial exported at its end: paths by format, relative ones in the experiment's folder."""
    if db.schema_version() < _FIRST_WITH_EXPORTS:
        return {}
    return dict(db.rows("SELECT format, path FROM exports WHERE sequence_id = ?", (sequence_id,)))


def read_matching(db: Database, word: str) -> list[tuple[int, str]]:
    """Return number and id of the trials that a word may mean: a number, else an id or the beginning of one."""
    if not word.isascii():
        return []
    if word.isdecimal():
        number = min(int(word), 2**62)
        return db.rows("SELECT sequence_id, trial_id FROM trials WHERE sequence_id = ?", (number,))
    return db.rows("SELECT sequence_id, trial_id FROM trials WHERE trial_id = ?1", (word,)) or db.rows(
        "SELECT sequence_id, trial_id FROM trials WHERE substr(trial_id, 1, length(?1)) = ?1 ORDER BY sequence_id",
        (word,),
    )


def sequence_id_of(db: Database, name: int | str) -> int:
    """Return the number of a trial that is named by its number or its id; raise `LookupError`."""
    text = str(name)
    if not text.isascii():
        row = None  # no id, and perhaps no text that the database takes
    elif text.isdecimal() and len(text) <= 18:
        row = db.row("SELECT sequence_id FROM trials WHERE sequence_id = ?", (int(text),))
    else:
        row = db.row("SELECT sequence_id FROM trials WHERE trial_id = ?", (text,))
    if row is None:
        raise LookupError(f"there is no trial '{text[:50]}': give a trial's number or its id")
    return row[0]


def _rows(db: Database, connection: Any, kind: type[_Row], sequence_ids: Sequence[int]) -> list[_Row]:
    """Return trials by their numbers, in that order; a few hundred at a time, so that no statement grows too long."""
    trials, main = dict[int, _Row](), db.main_objective()
    last, bound = last_expression(main)
    columns = {**_LISTED, **(_DETAILS if issubclass(kind, TrialDetail) else {}), "last": last}
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version < _FIRST_WITH_USER_RETRIES and "user_retries" in columns:
        columns["user_retries"] = "t.revivals"
    selected = ", ".join(f"({expression})" for expression in columns.values())
    for begin in range(0, len(sequence_ids), 500):
        listed = ", ".join(map(str, sequence_ids[begin : begin + 500]))
        values = dict[int, dict[str, float]]()
        for sequence_id, name, value in connection.execute(
            f"SELECT sequence_id, name, value FROM objective_values WHERE sequence_id IN ({listed})"
        ):
            values.setdefault(sequence_id, {})[name] = value
        for row in connection.execute(
            f"SELECT {selected} FROM trials t WHERE t.sequence_id IN ({listed})", bound
        ):
            with understood(db.path, f"trial {row[0]}"):
                stored = dict(zip(columns, row, strict=True))
                trials[row[0]] = kind(**_fields(stored, values.get(row[0], {}), main))
    return [trials[number] for number in sequence_ids if number in trials]


def _fields(row: dict[str, Any], values: dict[str, float], main: str) -> dict[str, Any]:
    """Return the fields of a trial, by name, of what is stored."""
    record = parsed(row.pop("record"))
    row["status"] = TrialStatus(row["status"]).value
    row["parameters"] = record["parameters"]
    row |= {name: record.get(name) for name in _IN_RECORD}
    row |= {name: parsed(row[name]) for name in _JSON if name in row}
    row["values"] = {name: _number(value) for name, value in values.items()}
    row["value"] = values.get(main)
    for name in ("start_time", "end_time"):
        row[name] = None if row[name] is None else _number(row[name])  # SQLite takes any text for a number
    if row["end_time"] is None and row["status"] != TrialStatus.PAUSED:
        row["duration"] = None
    return row


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} instead of a number")
    return value
