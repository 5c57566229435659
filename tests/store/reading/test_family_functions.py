"""What SQL knows of families."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator

import pytest

from pitchpipe.protocol import repeated, with_family_end
from pitchpipe.store.reading.database import add_family_functions

RECORD = '{"parameter_id": 0, "parameters": {"x": NaN}}'


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    add_family_functions(connection)
    yield connection
    connection.close()


def test_functions_read_records_with_any_values(db: sqlite3.Connection) -> None:
    repeat = repeated(RECORD, 7, 1, 41)
    ended = with_family_end(repeat, "raced")
    rows = db.execute(
        "SELECT family_of(?1), family_of(?2), family_end_of(?2), family_end_of(?3)", (RECORD, repeat, ended)
    )
    assert rows.fetchone() == (None, 7, None, "raced")


def test_mean_is_that_of_the_runner(db: sqlite3.Connection) -> None:
    statement = "SELECT mean_of(value) FROM (SELECT ?1 AS value UNION ALL SELECT ?2 UNION ALL SELECT ?3)"
    assert db.execute(statement, (0.1, 0.1, 0.1)).fetchone() == (0.1,)
    assert db.execute(statement, (1.0, math.inf, 1.0)).fetchone() == (math.inf,)
    assert db.execute(statement, (1.0, math.inf, -math.inf)).fetchone() == (None,)
    assert db.execute("SELECT mean_of(value) FROM (SELECT 1 AS value) WHERE value > 1").fetchone() == (None,)
