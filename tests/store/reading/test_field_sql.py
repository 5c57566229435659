"""Fields in SQL: what the guards of expressions let through, and what is refused before the database is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from json import dumps

import pytest

from pitchpipe.store.reading.field_sql import QueryError, field_expression, is_field, names_it, reported_under
from pitchpipe.store.reading.json_values import add_json_functions, named_values

NAMES = ["loss", "a b", "eval.loss", "a/b", "m/x", "é", 'say "x"', "a\\b", "x.", "."]
REPORT = {**dict.fromkeys(NAMES[:4], 0.5), "m": {"x": 0.5}, "m.x": 2, **dict.fromkeys(NAMES[5:], 0.5)}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        add_json_functions(connection)
        yield connection


@pytest.mark.parametrize("name", NAMES)
def test_name_is_found_where_it_is_and_the_guard_lets_it_through(name: str, db: sqlite3.Connection) -> None:
    assert named_values(REPORT)[name] == 0.5
    inside, bound = reported_under("value", name)
    guard, guarded = names_it("value", name)
    for text in (dumps(REPORT), dumps(REPORT, ensure_ascii=False)):
        statement = f"SELECT json_extract({inside}), {guard} FROM (SELECT ? AS value)"
        found, passes = db.execute(statement, [*bound, *guarded, text]).fetchone()
        assert (found, bool(passes)) == (0.5, True)
    for text in ("0.5", "null", "[1]", '"loss"', '{"other": 1}', '{"loss": NaN', "NaN"):
        found = db.execute(f"SELECT json_type({inside}) FROM (SELECT ? AS value)", [*bound, text]).fetchone()
        assert found == (None,)


@pytest.mark.parametrize(
    "field", ["metrics", "metrics.", "final", "parameters.", f"metrics.{'x' * 500}", "tags", "x"]
)
def test_what_is_no_field_is_refused(field: str) -> None:
    with pytest.raises(QueryError):
        field_expression(field)


def test_fields_are_told_from_names() -> None:
    fields = ["status", "last", "value", "value.x", "tags", "metrics.x", "final.x", "parameters.x"]
    assert [name for name in [*fields, "Status", "took", "x", "metric.x"] if is_field(name)] == fields
