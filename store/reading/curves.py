"""Intermediate results: of one trial since a cursor, and of many trials thinned out for a plot.

Thinning keeps the lowest and the highest result of each stretch of a curve, so that every spike stays visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...protocol import Json
from ..errors import understood
from .database import Database
from .field_sql import Clause, QueryError, number_expression
from .json_values import numbers_in, parsed

_MOST_RESULTS = 10_000
_LATEST = 10  # results, of which one has a metric that is reported
_MOST_LISTED = 500  # trials in one statement


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric of a trial: result number `sequences[i]`, from 0, has `values[i]`, None if it is not a number.

    `total` is the number of results before thinning.
    """

    sequence_id: int
    sequences: list[int]
    values: list[float | None]
    total: int


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """An intermediate result as it was reported; `sequence` is its number, from 0."""

    sequence: int
    attempt: int
    time: float
    value: Json


@dataclass(frozen=True, slots=True)
class NewResults:
    """What a trial reported since a cursor.

    A reader that keeps results drops those numbered `keep_below` or more (a later attempt reports them again), and adds
    `results`. `has_more`: more follow at `cursor`.
    """

    cursor: str
    keep_below: int
    results: list[ReportedResult]
    has_more: bool = False


def read_new_results(
    db: Database, sequence_id: int, cursor: str | None = None, limit: int = _MOST_RESULTS
) -> NewResults:
    """Return the results of a trial since `cursor`; without one, all from the first.

    Raise `QueryError` for an invalid cursor.
    """
    attempt, begin = _position(cursor)
    trial = db.row("SELECT attempt, next_sequence FROM trials WHERE sequence_id = ?", (sequence_id,))
    now_attempt, there = trial or (0, 0)
    (first,) = db.row(
        "SELECT min(sequence) FROM metrics WHERE sequence_id = ? AND kind = 'PERIODICAL' AND NOT superseded"
        " AND attempt > ? AND sequence < ?",
        (sequence_id, attempt, begin),
    ) or (None,)
    keep_below = min(begin, there, begin if first is None else first)
    rows = db.rows(
        "SELECT sequence, attempt, time, value FROM metrics WHERE sequence_id = ? AND kind = 'PERIODICAL'"
        " AND sequence >= ? AND NOT superseded ORDER BY sequence, attempt LIMIT ?",
        (sequence_id, keep_below, limit + 1),
    )
    has_more, rows = len(rows) > limit, rows[:limit]
    with understood(db.path, f"a result of trial {sequence_id}"):
        results = [
            ReportedResult(sequence, reported_in, moment, parsed(value))
            for sequence, reported_in, moment, value in rows
        ]
    end = rows[-1][0] + 1 if rows else keep_below
    return NewResults(f"{now_attempt}.{end}", keep_below, results, has_more)


def read_results(db: Database, sequence_ids: Sequence[int]) -> dict[int, dict[int, Json]]:
    """Return the intermediate results, by their sequence numbers, of each of these trials that has any."""
    reports = read_reports(db, sequence_ids)
    return {number: {one[0]: one[2] for one in reported} for number, reported in reports.items()}


def read_reports(db: Database, sequence_ids: Sequence[int]) -> dict[int, list[tuple[int, float, Json]]]:
    """Return sequence number, time and value of the intermediate results of each of these trials that has any."""
    found: dict[int, list[tuple[int, float, Json]]] = {}
    with understood(db.path, "metrics"):
        for begin in range(0, len(sequence_ids), _MOST_LISTED):
            for number, sequence, time, value in db.rows(
                "SELECT sequence_id, sequence, time, value FROM metrics"
                f" WHERE sequence_id IN ({_listed(sequence_ids[begin : begin + _MOST_LISTED])})"
                " AND kind = 'PERIODICAL' AND NOT superseded ORDER BY sequence_id, sequence, attempt"
            ):
                found.setdefault(number, []).append((sequence, time, parsed(value)))
    return found


def _position(cursor: str | None) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    attempt, dot, sequence = cursor.partition(".")
    if not dot or not attempt.isdecimal() or not sequence.isdecimal() or len(cursor) > 40:
        raise QueryError(
            f"'{cursor}' is not a cursor: use the one of the last response, or none for all results"
        )
    return min(int(attempt), 2**60), min(int(sequence), 2**60)


def read_curve(db: Database, sequence_id: int, metric: str = "default", points: int | None = None) -> Curve:
    """Return one metric of the intermediate results of a trial, thinned out to about `points` results."""
    return read_curves(db, [sequence_id], metric, points)[0]


def read_curves(
    db: Database, sequence_ids: Sequence[int], metric: str = "default", points: int | None = None
) -> list[Curve]:
    """Return one metric of the intermediate results of each trial, thinned out to about `points` results."""
    found: list[Curve] = []
    expression = number_expression("value", metric, db.main_objective())
    with db.connection() as connection:
        counts = connection.execute(
            f"SELECT sequence_id, next_sequence FROM trials WHERE sequence_id IN ({_listed(sequence_ids)})"
        )
        totals: dict[int, int] = dict(counts.fetchall())
        for sequence_id in sequence_ids:
            total = totals.get(sequence_id, 0)
            statement, values = _statement(sequence_id, expression, total, points)
            rows = connection.execute(statement, values).fetchall() if total else []
            numbers = [_number(row[1]) for row in rows]
            found.append(Curve(sequence_id, [row[0] for row in rows], numbers, total))
    return found


def read_step(db: Database, sequence: int, metric: str = "default") -> dict[int, float]:
    """Return intermediate result number `sequence` of every trial that has one, by the trial's number."""
    number, bound = number_expression("value", metric, db.main_objective())
    rows = db.rows(
        f"SELECT sequence_id, {number} FROM metrics WHERE kind = 'PERIODICAL' AND sequence = ? AND NOT superseded",
        (*bound, sequence),
    )
    numbers = {sequence_id: _number(value) for sequence_id, value in rows}
    return {sequence_id: number for sequence_id, number in numbers.items() if number is not None}


def read_latest(
    db: Database, sequence_ids: Sequence[int], sequence: int | None = None
) -> dict[int, dict[str, float]]:
    """Return the numbers in the last intermediate results of each of these trials, by name: the last of each.

    Scripts report some metrics now and then: the last ten results are read. With a `sequence` that result alone counts.
    """
    main, found = db.main_objective(), dict[int, dict[str, float]]()
    which = f">= t.next_sequence - {_LATEST}" if sequence is None else "= ?"
    bound = () if sequence is None else (min(sequence, 2**62),)
    with understood(db.path, "metrics"):
        for begin in range(0, len(sequence_ids), _MOST_LISTED):
            for number, value in db.rows(
                "SELECT t.sequence_id, m.value FROM trials t JOIN metrics m ON m.sequence_id = t.sequence_id"
                f" AND m.kind = 'PERIODICAL' AND m.sequence {which} AND NOT m.superseded"
                f" WHERE t.sequence_id IN ({_listed(sequence_ids[begin : begin + _MOST_LISTED])})"
                " ORDER BY t.sequence_id, m.sequence DESC, m.attempt DESC",
                bound,
            ):
                known = found.setdefault(number, {})
                if main not in known or "{" in str(value):  # most results are a bare number
                    found[number] = {**numbers_in(parsed(value), main), **known}
    return found


def _statement(sequence_id: int, expression: Clause, total: int, points: int | None) -> Clause:
    number, bound = expression
    counted = "FROM metrics WHERE sequence_id = ? AND kind = 'PERIODICAL' AND NOT superseded"
    if points is None or total <= points:
        return f"SELECT sequence, {number} {counted} ORDER BY sequence, attempt", [*bound, sequence_id]
    # Two results a stretch. SQLite gives the other columns of the row in which min() or max() was found.
    stretch = -(-2 * total // max(2, points))
    inner = f"SELECT sequence, {number} AS number {counted}"
    extremes = [
        f"SELECT sequence, {best}(number) AS number FROM ({inner}) WHERE number IS NOT NULL"
        f" GROUP BY sequence / {stretch}"
        for best in ("min", "max")
    ]
    ends = f"SELECT sequence, number FROM ({inner} AND sequence IN (0, ?)) WHERE number IS NOT NULL"
    statement = " UNION ".join([*extremes, ends]) + " ORDER BY 1"
    return statement, [*bound, sequence_id] * 2 + [*bound, sequence_id, total - 1]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)
