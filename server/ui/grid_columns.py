"""The columns of the table of trials, made from the objectives and the search space of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import Dimension, dimensions_of

__all__ = ["Column", "columns_of"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `field` is the field of a trial query, `head` its heading.

    `kind` is `number`, `text`, or empty for a column that cannot be filtered; `path` leads to a parameter's value.
    """

    field: str
    head: str
    kind: str = ""
    width: int = 110
    hidden: bool = False
    path: tuple[str, ...] = ()

    @property
    def definition(self) -> dict[str, Any]:
        """The definition for AG Grid."""
        return {
            "colId": self.field,
            "field": self.field,
            "headerName": self.head,
            "width": self.width,
            "hide": self.hidden,
            **_FILTERS[self.kind],
            **(_TONE if self.field == "status" else {}),
        }


_TONE = {":cellClass": "cell => cell.data?.tone ?? ''"}
_ONE_CONDITION = {"maxNumConditions": 1, "debounceMs": 150}
_NUMBER_OPTIONS = [
    "lessThan",
    "lessThanOrEqual",
    "greaterThan",
    "greaterThanOrEqual",
    "equals",
    "notEqual",
    "inRange",
    "blank",
    "notBlank",
]
_TEXT_OPTIONS = ["contains", "equals", "notEqual", "blank", "notBlank"]
_FILTERS: Mapping[str, dict[str, Any]] = {
    "": {"filter": False},
    "number": {
        "filter": "agNumberColumnFilter",
        "filterParams": {**_ONE_CONDITION, "filterOptions": _NUMBER_OPTIONS, "inRangeInclusive": True},
        "type": "rightAligned",
    },
    "text": {
        "filter": "agTextColumnFilter",
        "filterParams": {**_ONE_CONDITION, "filterOptions": _TEXT_OPTIONS},
    },
}


def columns_of(config: Mapping[str, Any], objectives: Sequence[Mapping[str, str]]) -> list[Column]:
    """Return all columns, in the order in which they are shown."""
    return [
        Column("sequence_id", "Trial", "number", 90),
        Column("status", "Status", "", 130),
        *_objective_columns(objectives),
        Column("last", "Last result", "number"),
        *map(_parameter_column, dimensions_of(config.get("searchSpace"), config.get("constraints") or ())),
        Column("duration", "Took", "number"),
        Column("intermediate_results", "Results", "number", 100),
        Column("start_time", "Began", "", 170),
        Column("reason", "Why it ended", "text", 380),
        Column("kind", "Kind of failure", "text", 140, hidden=True),
        Column("trial_id", "Id", "text", 100, hidden=True),
        Column("attempt", "Attempt", "number", 100, hidden=True),
        Column("agent", "Where", "text", 140, hidden=True),
    ]


def _objective_columns(objectives: Sequence[Mapping[str, str]]) -> Iterator[Column]:
    for objective in objectives:
        name = objective["name"]
        yield Column(f"value.{name}", "Result" if name == "default" else name, "number")


def _parameter_column(dimension: Dimension) -> Column:
    path = (*dimension.key, "_name") if dimension.nested else dimension.key
    kind = "text" if dimension.categorical else "number"
    return Column(f"parameters.{'.'.join(path)}", dimension.name, kind, 120, path=path)
