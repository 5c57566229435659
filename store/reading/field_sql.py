"""Fields of trials in SQL, over `trials t`: each is an expression, with the values for its question marks.

A field is the name of a column (`sequence_id`, `status`, `reason` ...), `value` or `value.NAME` (an objective), `last`
(the last intermediate result), `metrics.NAME` (what a trial reported last under a name), `final.NAME` (of a final
result that is a dict), `duration` (seconds), `intermediate_results` (a number), `tags` and `note` (what people noted),
or `parameters.NAME`, nested names joined by dots, or by slashes where a name has a dot.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...protocol import Objective
from .trial_columns import TrialTable, columns_in

# What SQLite's JSON paths find in every spelling of JSON: it compares them with names as they are escaped.
_PLAIN_NAME = re.compile(r"[ !#-.0-\[\]-~]*")
_COLUMNS: Mapping[str, str] = MappingProxyType(
    {column.name: column.sql for column in columns_in(TrialTable.WHERE) if column.sql}
)
NOTED = tuple(column.name for column in columns_in(TrialTable.WHERE) if not column.sql)
"""The fields that are not in the database."""
FIELDS = (*_COLUMNS, *NOTED, "value", "last")
"""The fields that are not followed by a name."""
JSON_HEADS: Mapping[str, str] = MappingProxyType(
    {"parameters": "lr", "final": "accuracy", "metrics": "train_loss"}
)
"""Before the names of values of any kind, each with an example of a name."""
_HEADS = (*JSON_HEADS, "value")
_LONGEST_FIELD = 500

Clause = tuple[str, list[Any]]
"""A part of a statement, and the values for its question marks."""


class QueryError(ValueError):
    """An invalid query; the message says what is valid."""


def is_field(text: str) -> bool:
    """Return whether a text is a field as it is, rather than a name that users have for one.

    >>> [text for text in ("status", "last", "parameters.lr", "lr", "train_loss") if is_field(text)]
    ['status', 'last', 'parameters.lr']
    """
    return text in FIELDS or text.partition(".")[0] in _HEADS


def check_quotes(text: str) -> None:
    """Raise `QueryError` for a name in brackets without quotes."""
    if unquoted := re.fullmatch(rf"({'|'.join(_HEADS)})\[(.*)\]", text):
        raise QueryError(f'put the name in quotes: {unquoted[1]}["{unquoted[2]}"]')


def field_expression(field: str, main: str = "default") -> Clause:
    """Return the SQL expression of a field, with its values; raise `QueryError`.

    `main` is the name of the objective that `value` and `last` mean.
    """
    if field in _COLUMNS:
        return f"({_COLUMNS[field]})", []
    head, _, name = field.partition(".")
    if field == "last":
        last, bound = last_expression(main)
        return f"({last})", bound
    if head == "value":
        objective = "SELECT value FROM objective_values WHERE sequence_id = t.sequence_id AND name = ?"
        return f"({objective})", [main if name in ("", "default") else name]
    if head in JSON_HEADS and name and len(field) <= _LONGEST_FIELD:
        return _metric(name) if head == "metrics" else _inside(head, name)
    if head in JSON_HEADS:
        why = "is too long" if name else "names nothing"
        raise QueryError(f"'{field[:50]}' {why}: write {head}.NAME, such as {head}.{JSON_HEADS[head]}")
    check_quotes(field)
    if field in NOTED:
        raise QueryError(f"trials have no order by {field}")
    known = [*FIELDS, *(f"{head}.NAME" for head in _HEADS)]
    raise QueryError(f"'{field}' is not a field of a trial: write one of {', '.join(known)}")


def limit_broken(objectives: Sequence[Objective]) -> Clause:
    """Return the SQL condition for rows of `objective_values` that break a limit, with its values."""
    limits = [one for one in objectives if one.is_limited]
    broken = " OR ".join("name = ? AND value NOT BETWEEN ? AND ?" for _ in limits)
    return broken or "0", [value for one in limits for value in (one.name, *one.kept_range)]


def limits_exceeded(objectives: Sequence[Objective]) -> Clause:
    """Return the SQL aggregate of rows of `objective_values` for the sum of `Objective.violation`, with its values."""
    ends = [
        (one.name, end, side * (abs(end) or 1.0))
        for one in objectives
        for side, end in zip((-1.0, 1.0), one.kept_range, strict=True)
        if math.isfinite(end)
    ]
    terms = " + ".join("total((name = ?) * max(0.0, (value - ?) / ?))" for _ in ends)
    return terms or "0.0", [value for one in ends for value in one]


def number_expression(column: str, name: str, main: str = "default") -> Clause:
    """Return the SQL expression for the number of one metric in reported JSON text, with its values.

    A dotted name may be one key or a path of nested ones. A bare number is the `main` objective, which is also called
    `default`; true is 1. What is not a finite number is NULL.
    """
    bare = f"WHEN {column} GLOB '[0-9]*' OR {column} GLOB '-[0-9]*' THEN CAST({column} AS REAL)"
    name = main if name == "default" else name
    inside, bound = reported_under(column, name)
    is_number = f"{column} LIKE '{{%' AND json_type({inside}) IN ('integer', 'real', 'true', 'false')"
    number = f"CASE {bare if name == main else ''} WHEN {is_number} THEN json_extract({inside}) END"
    return f"nullif(nullif({number}, 9e999), -9e999)", [*bound, *bound]


def last_expression(name: str, main: str | None = None) -> Clause:
    """Return the SQL query of the number of an objective, by default the `main` one, in a trial's last result."""
    number, bound = number_expression("m.value", name, main or name)
    return f"SELECT CAST({number} AS REAL) FROM {_REPORTS} ORDER BY m.sequence DESC LIMIT 1", bound


_REPORTS = "metrics m WHERE m.sequence_id = t.sequence_id AND m.kind = 'PERIODICAL' AND NOT m.superseded"


def _metric(name: str) -> Clause:
    """Return the SQL expression of what a trial reported last under a name, with its values.

    That is in its final result, or else in the last intermediate result that has the name. NaN and null are NULL.
    `read_metrics` returns the same values as they were reported.
    """
    final, in_final = reported_under("t.final", name)
    report, in_report = reported_under("m.value", name)
    guard, guarded = names_it("m.value", name)
    last = (
        f"SELECT {_value(report)} FROM {_REPORTS} AND {guard} AND json_type({report}) <> 'object'"
        " ORDER BY m.sequence DESC LIMIT 1"
    )
    values = [*in_final * 3, *in_report * 2, *guarded, *in_report]
    return f"(CASE WHEN json_type({final}) <> 'object' THEN {_value(final)} ELSE ({last}) END)", values


def reported_under(column: str, name: str) -> Clause:
    """Return what SQLite's JSON functions get for a name in reported JSON text, as `named_values` knows it."""
    is_path = _PLAIN_NAME.fullmatch(name) and "." not in name
    return _inner(column, [name]) if is_path else (f"reported_json({column}, ?), '$'", [name])


def names_it(column: str, name: str) -> Clause:
    """Return a quick SQL condition that JSON text meets if a name is in it, with its values."""
    if not _PLAIN_NAME.fullmatch(name):
        return "1", []
    return f"instr({column}, ?)", [f'{name.rpartition(".")[2]}"']


def _value(inside: str) -> str:
    """Return the SQL value of what `inside` leads to: a boolean is a blob, so that true is neither 1 nor the text.

    It has the values for `inside` twice.
    """
    return (
        f"CASE json_type({inside}) WHEN 'true' THEN CAST('true' AS BLOB)"
        f" WHEN 'false' THEN CAST('false' AS BLOB) ELSE json_extract({inside}) END"
    )


def _inner(column: str, names: Sequence[str]) -> Clause:
    """Return what SQLite's JSON functions get for a value in nested objects, with its values.

    They know neither NaN and Infinity nor all names.
    """
    if all(map(_PLAIN_NAME.fullmatch, names)):
        document = f"CASE WHEN json_valid({column}) THEN {column} ELSE sql_json({column}) END"
        return f"{document}, ?", [json_path(names)]
    return f"inner_json({column}, ?), '$'", [json.dumps(names)]


def json_path(names: Sequence[str]) -> str:
    """Return SQLite's path to a value in nested objects.

    >>> json_path(["model", "layer.0"])
    '$."model"."layer.0"'
    """
    return "$" + "".join(f".{json.dumps(name, ensure_ascii=False)}" for name in names)


def _inside(head: str, name: str) -> Clause:
    """Return the SQL expression for a dotted name, which may be one key or a path of nested ones, with its values."""
    column, root = ("t.record", ["parameters"]) if head == "parameters" else ("t.final", [])
    paths = [[name]]
    for separator in sorted({"." * ("." in name), *re.findall("/+", name)} - {""}):
        paths.append(re.split(f"(?<!/){re.escape(separator)}(?!/)", name))
    if head == "parameters":  # a nested choice is written by its name
        paths = [deeper for path in paths for deeper in ([*path, "_name"], path)]
    found, values = [], list[Any]()
    for path in paths:
        inside, bound = _inner(column, [*root, *path])
        found.append(_value(inside))
        values += [*bound, *bound]
    return f"coalesce({', '.join(found)}, NULL)", values
