"""The columns of trials: what each table needs of a column that has no code of its own there."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pitchpipe.store.reading.read_model import TrialDetail, TrialRow
from pitchpipe.store.reading.trial_columns import COLUMNS, TrialColumn, TrialTable, columns_in

# Those that are not fields of a trial: its intermediate results, its metrics, and what people noted.
OUTSIDE = {"intermediate", "metrics", "tags", "note"}
HEADED = TrialTable.TERMINAL | TrialTable.PAGE | TrialTable.MENU | TrialTable.REPORT
ORDERED = [table for table in TrialTable if table not in TrialTable.PAGE | TrialTable.MENU]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_column_has_what_its_tables_need(column: TrialColumn) -> None:
    kind = TrialDetail if column.name == "error" else TrialRow
    assert column.name in {one.name for one in fields(kind)} | OUTSIDE
    assert column.head or not column.tables & HEADED
    assert column.sql or column.name in OUTSIDE or TrialTable.WHERE not in column.tables


@pytest.mark.parametrize("table", [*ORDERED, TrialTable.PAGE | TrialTable.MENU])
def test_table_has_each_of_its_columns_once(table: TrialTable) -> None:
    names = [column.name for column in columns_in(table)]
    assert sorted(names) == sorted(column.name for column in COLUMNS if column.tables & table)


def test_every_field_of_a_trial_is_a_column() -> None:
    assert {one.name for one in fields(TrialRow)} <= {column.name for column in COLUMNS}
