"""The columns of the table of trials, made from the objectives and the search space of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import Dimension, dimensions_of

__all__ = ["Column", "columns_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
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


def columns_of(config: Mapping[str, Any], metrics: Sequence[str]) -> list[Column]:
    """Return all columns, in the order in which they are shown."""
    return [
        Column(field="sequence_id", head="Trial", kind="number", width=90),
        *_family_columns(config),
        Column(field="status", head="Status", kind="", width=130),
        *_metric_columns(metrics),
        Column(field="last", head="Last result", kind="number"),
        *map(_parameter_column, dimensions_of(config.get("searchSpace"), config.get("constraints") or ())),
        Column(field="duration", head="Took", kind="number"),
        Column(field="intermediate_results", head="Results", kind="number", width=100),
        Column(field="start_time", head="Began", kind="", width=170),
        Column(field="reason", head="Why it ended", kind="text", width=380),
        Column(field="kind", head="Kind of failure", kind="text", width=140, hidden=True),
        Column(field="trial_id", head="Id", kind="text", width=100, hidden=True),
        Column(field="attempt", head="Attempt", kind="number", width=100, hidden=True),
        Column(field="agent", head="Where", kind="text", width=140, hidden=True),
    ]


def _family_columns(config: Mapping[str, Any]) -> Iterator[Column]:
    """Yield the columns that tell repeats of a configuration apart."""
    if (config.get("repeats") or {}).get("count", 1) > 1:
        for field in ("family", "repeat"):
            yield Column(field=field, head=field.capitalize(), kind="number", width=90)


def _metric_columns(metrics: Sequence[str]) -> Iterator[Column]:
    for name in metrics:
        yield Column(field=f"value.{name}", head="Result" if name == "default" else name, kind="number")


def _parameter_column(dimension: Dimension) -> Column:
    path = (*dimension.key, "_name") if dimension.nested else dimension.key
    kind = "text" if dimension.categorical else "number"
    return Column(field=f"parameters.{'.'.join(path)}", head=dimension.name, kind=kind, width=120, path=path)
