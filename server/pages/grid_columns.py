"""The columns of the table of trials, made from the objectives and the search space of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...store.reading import visible
from ..figures import Dimension, dimensions_of

__all__ = ["Column", "columns_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: `field` is the field of a trial query, `head` its heading.

    `kind` is `number`, `text`, or empty for a column that cannot be filtered; `path` leads to a parameter's value,
    `direction` is that of an objective, which the first click sorts best first.
    """

    field: str
    head: str
    kind: str = ""
    width: int = 110
    hidden: bool = False
    path: tuple[str, ...] = ()
    direction: str | None = None

    @property
    def definition(self) -> dict[str, Any]:
        """The definition for AG Grid."""
        return {
            "colId": self.field,
            "field": self.field,
            "headerName": visible(self.head),
            "width": self.width,
            "hide": self.hidden,
            **_FILTERS[self.kind],
            **(_TONE if self.field == "status" else {}),
            **({"sortable": False} if self.field in _NOTED else {}),
            **({"sortingOrder": _ORDERS[self.direction]} if self.direction else {}),
        }


_NOTED = ("tags", "note")  # the store has no order for what people noted
_ORDERS: Mapping[str, list[str]] = {"maximize": ["desc", "asc"], "minimize": ["asc", "desc"]}
_TONE = {":cellClass": "cell => cell.data?.tone ?? ''"}
_ARROW = 25  # of the column that is sorted
_NUMBER = 125  # six digits after 0.000
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


def columns_of(
    config: Mapping[str, Any],
    metrics: Sequence[str],
    directions: Mapping[str, str] | None = None,
    *,
    has_last: bool = True,
    has_reasons: bool = True,
) -> list[Column]:
    """Return all columns, in the order in which they are shown; `directions` are those of the objectives, by name.

    Last results and reasons are hidden at first if no trial has them.
    """
    return [
        Column(field="sequence_id", head="Trial", kind="number", width=82),
        *_family_columns(config),
        Column(field="status", head="Status", kind="", width=112),
        *_metric_columns(metrics, directions or {}),
        Column(
            field="last", head="Last result", kind="number", width=_width("Last result"), hidden=not has_last
        ),
        *map(_parameter_column, dimensions_of(config.get("searchSpace"), config.get("constraints") or ())),
        Column(field="reason", head="Why it ended", kind="text", width=380, hidden=not has_reasons),
        Column(field="duration", head="Took", kind="number"),
        Column(field="intermediate_results", head="Results", kind="number", width=_width("Results")),
        Column(field="start_time", head="Began", kind="", width=170),
        Column(field="kind", head="Kind of failure", kind="text", width=140, hidden=True),
        Column(field="trial_id", head="Id", kind="text", width=100, hidden=True),
        Column(field="attempt", head="Attempt", kind="number", width=_width("Attempt"), hidden=True),
        Column(field="agent", head="Agent", kind="text", width=140, hidden=True),
        Column(field="tags", head="Tags", kind="text", width=140, hidden=True),
        Column(field="note", head="Note", kind="text", width=260, hidden=True),
    ]


def _family_columns(config: Mapping[str, Any]) -> Iterator[Column]:
    """Yield the columns that tell repeats of a configuration apart."""
    if (config.get("repeats") or {}).get("count", 1) > 1:
        for field in ("family", "repeat"):
            head = field.capitalize()
            yield Column(field=field, head=head, kind="number", width=_width(head))


def _metric_columns(metrics: Sequence[str], directions: Mapping[str, str]) -> Iterator[Column]:
    for name in metrics:
        head = "Result" if name == "default" else name
        yield Column(
            field=f"value.{name}",
            head=head,
            kind="number",
            width=_width(head) + _ARROW,
            direction=directions.get(name),
        )


def _width(head: str) -> int:
    """Return the width of a column in which its head is not cut."""
    return min(max(105, 9 * len(head) + 60), 260)


def _parameter_column(dimension: Dimension) -> Column:
    kind = "text" if dimension.categorical else "number"
    return Column(
        field=dimension.field,
        head=dimension.name,
        kind=kind,
        width=max(_width(dimension.name), 0 if dimension.categorical else _NUMBER),
        path=dimension.path,
    )
