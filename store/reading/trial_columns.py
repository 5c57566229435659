"""The columns of the tables of trials, in one table: where each value comes from, and where users see it.

A new column is a row here, and a field of `TrialRow` in `read_model.py`. What lists trials derives from this table:
conditions and orders, exports, Python, the HTTP API, `pitchpipe trials`, the pages and the report. `parameters`,
`values` and `metrics` become a column for each name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Flag, auto
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeAlias

_NOW = "(julianday('now') - 2440587.5) * 86400.0"
# A pause, or the wait for another attempt, is no part of it; a clock that was set back does not make it less than 0.
RAN = f"""(
    SELECT total(max(0.0, end_time - start_time)) FROM attempts WHERE sequence_id = t.sequence_id
) + CASE
    WHEN EXISTS (SELECT 1 FROM attempts WHERE sequence_id = t.sequence_id AND attempt = t.attempt) THEN 0.0
    ELSE max(0.0, coalesce(t.end_time, {_NOW}) - t.start_time)
END"""
"""The seconds that a trial `t` ran, in all its attempts; null before it has begun."""


class TrialTable(Flag):
    """What has columns of trials. The HTTP API has all fields of `TrialRow`."""

    WHERE = auto()  # conditions, and the fields by which HTTP and pages sort
    JSON = auto()  # `export`, and `--json` of verbs about trials
    CSV = auto()
    PYTHON = auto()  # `ExperimentResult.trials`, and its data frame
    TERMINAL = auto()  # `pitchpipe trials`
    PAGE = auto()
    MENU = auto()  # on the page only once it is chosen in the menu
    REPORT = auto()


_WHERE, _JSON, _CSV, _PYTHON, _TERMINAL, _PAGE, _MENU, _REPORT = TrialTable
_FILES = _JSON | _CSV
_DATA = _WHERE | _JSON | _PYTHON
_SHOWN = _TERMINAL | _PAGE | _REPORT

ValueKind: TypeAlias = Literal["number", "text", "status", "moment", "duration", "json"]
"""How values are read, filtered and put into words."""


@dataclass(frozen=True, slots=True)
class TrialColumn:
    """A column; its `name` is that of the field of `TrialRow`.

    `sql` gives its value in queries over `trials t`. A value that is `in_record`, the parameter record, is read from
    there, under the same name. A column without either has code of its own.
    """

    name: str
    kind: ValueKind
    sql: str
    tables: TrialTable
    _: KW_ONLY
    head: str = ""  # on pages
    short: str = ""  # where there is less room, if it is not the head in small letters
    in_record: bool = False
    of_repeats: bool = False  # only where configurations are run several times
    exported_as: str = ""  # its name in files, if it has another one there

    @property
    def exported_name(self) -> str:
        """Its name in exported files."""
        return self.exported_as or self.name

    @property
    def short_head(self) -> str:
        """Its heading in the terminal and in the report."""
        return self.short or self.head.lower()


# In the order of tables that have no other one below.
COLUMNS = (
    TrialColumn("sequence_id", "number", "t.sequence_id", _DATA | _CSV | _SHOWN, head="Trial"),
    TrialColumn("trial_id", "text", "t.trial_id", _DATA | _CSV | _TERMINAL | _MENU, head="Id", exported_as="id"),
    TrialColumn("status", "status", "t.status", _DATA | _CSV | _SHOWN, head="Status"),
    TrialColumn("created", "moment", "t.created", _WHERE),
    TrialColumn("start_time", "moment", "t.start_time", _DATA | _CSV | _PAGE, head="Began"),
    TrialColumn("end_time", "moment", "t.end_time", _DATA | _CSV),
    TrialColumn("parameters", "json", "", _FILES | _PYTHON | _SHOWN, head="Parameters", in_record=True),
    TrialColumn("intermediate", "json", "", _JSON),
    TrialColumn("value", "number", "", _PYTHON),
    TrialColumn("values", "json", "", _SHOWN, head="Result"),
    TrialColumn("last", "number", "", _PAGE, head="Last result"),
    TrialColumn("final", "json", "t.final", _FILES | _PYTHON),
    TrialColumn("metrics", "json", "", _FILES | _PYTHON | _SHOWN, head="Metrics"),
    TrialColumn("duration", "duration", RAN, _WHERE | _PYTHON | _SHOWN, head="Took"),
    TrialColumn("reason", "text", "t.reason", _DATA | _CSV | _SHOWN, head="Why it ended", short="reason"),
    TrialColumn("kind", "text", "t.kind", _DATA | _MENU, head="Kind of failure"),
    TrialColumn("exit_code", "number", "t.exit_code", _JSON),
    TrialColumn("attempt", "number", "t.attempt", _DATA | _MENU, head="Attempt", exported_as="attempts"),
    TrialColumn("agent", "text", "t.agent", _WHERE | _MENU, head="Agent"),
    TrialColumn("intermediate_results", "number", "t.next_sequence", _WHERE | _PYTHON | _PAGE, head="Results"),
    TrialColumn(
        "family", "number", "family_of(t.record)", _DATA | _CSV | _SHOWN, head="Family", in_record=True, of_repeats=True
    ),
    TrialColumn(
        "repeat", "number", "repeat_of(t.record)", _DATA | _CSV | _PAGE, head="Repeat", in_record=True, of_repeats=True
    ),
    TrialColumn("seed", "number", "", _FILES | _PYTHON, in_record=True, of_repeats=True),
    TrialColumn("family_end", "text", "", TrialTable(0), in_record=True),
    TrialColumn("parameter_source", "text", "", TrialTable(0), in_record=True),
    TrialColumn("error", "text", "", _PYTHON),
    TrialColumn("code", "text", "t.code", _DATA | _CSV | _MENU, head="Code"),
    TrialColumn("tags", "text", "", _WHERE | _MENU, head="Tags"),
    TrialColumn("note", "text", "", _WHERE | _MENU, head="Note"),
)  # fmt: skip


# The names in order; those of other columns stand in the place of the dots.
_OTHERS = "..."
_ORDERS: Mapping[TrialTable, str] = MappingProxyType(
    {
        _JSON: "trial_id sequence_id status parameters intermediate final metrics ...",
        _PYTHON: "trial_id sequence_id status parameters value final attempt intermediate_results start_time"
        " end_time duration reason error metrics family repeat seed kind ...",
        _TERMINAL: "sequence_id trial_id family status values metrics duration ... parameters reason",
        _PAGE | _MENU: "sequence_id family repeat status values last parameters metrics reason duration"
        " intermediate_results start_time kind trial_id attempt agent code ... tags note",
        _REPORT: "sequence_id family status values metrics parameters duration ... reason",
    }
)


@cache
def columns_in(table: TrialTable, *, with_repeats: bool = True) -> tuple[TrialColumn, ...]:
    """Return the columns of a table, in its order; without repeats those that tell repeats apart are left out.

    >>> [column.name for column in columns_in(TrialTable.TERMINAL, with_repeats=False)]
    ['sequence_id', 'trial_id', 'status', 'values', 'metrics', 'duration', 'parameters', 'reason']
    """
    columns = {column.name: column for column in COLUMNS if column.tables & table}
    order = _ORDERS.get(table, _OTHERS).split()
    others = [name for name in columns if name not in order]
    names = [name for place in order for name in (others if place == _OTHERS else [place])]
    return tuple(columns[name] for name in names if with_repeats or not columns[name].of_repeats)
