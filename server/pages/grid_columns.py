"""The columns of the table of trials, as AG Grid takes them: with a filter for each kind of value."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...protocol import Config, JsonObject
from ...store.reading import FieldNames, TrialColumn, TrialTable, columns_in
from ...telling import visible
from ..figures import Dimension, dimensions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: `field` is the field of a trial query, `head` its heading.

    `kind` is `number`, `text`, or empty for a column that cannot be filtered; `path` leads to a parameter's value,
    `metric` is the name under which trials report it, `direction` is that of an objective, which the first click sorts
    best first. The others are `stored` columns.
    """

    field: str
    head: str
    kind: str = ""
    width: int = 110
    hidden: bool = False
    path: tuple[str, ...] = ()
    metric: str | None = None
    direction: str | None = None
    stored: TrialColumn | None = None
    has_filter: bool = True

    @property
    def definition(self) -> JsonObject:
        """The definition for AG Grid."""
        return {
            "colId": self.field,
            "field": self.field,
            "headerName": visible(self.head),
            "width": self.width,
            "hide": self.hidden,
            **_FILTERS[self.kind],
            **({} if self.has_filter else {"filter": False}),
            **(_TONE if self.field == "status" else {}),
            **(_LIMIT if self.field.startswith("value.") else {}),
            **({"sortable": False} if self.field in _NOTED else {}),
            **({"sortingOrder": _ORDERS[self.direction]} if self.direction else {}),
        }


_NOTED = ("tags", "note")  # the store has no order for what people noted
_ORDERS: Mapping[str, list[str]] = {"maximize": ["desc", "asc"], "minimize": ["asc", "desc"]}
_TONE = {":cellClass": "cell => cell.data?.tone ?? ''"}
_LIMIT = {
    ":cellClass": "cell => ['ag-right-aligned-cell',"
    " ...(cell.data?.broken?.includes(cell.colDef.field) ? ['bad'] : [])]"
}
# Of the kinds of values that can be filtered.
_FILTER_KINDS: Mapping[str, str] = {"number": "number", "duration": "number", "text": "text"}
_WIDTHS: Mapping[str, int] = {"sequence_id": 82, "trial_id": 100, "status": 145, "reason": 380, "note": 260}
_WIDTHS_BY_KIND: Mapping[str, int] = {"text": 140, "moment": 170, "duration": 110}
_ARROW = 25  # of the column that is sorted
_NUMBER = 125  # six digits after 0.000
_REPEATS = 200  # mean of 3 of 5 repeats
_MEAN = 175  # 0.297392 ± 0.0512
_MOST_SHOWN = 2  # metrics: the parameters and the objective tell more
_MOST_LISTED = 50
_OF_SINGLE_TRIALS = (
    "repeat",
    "last",
    "intermediate_results",
    "start_time",
    "kind",
    "trial_id",
    "attempt",
    "agent",
    "tags",
    "note",
)
_ONE_CONDITION = {"maxNumConditions": 1, "debounceMs": 150}
SYMBOLS: Mapping[str, str] = {
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
    "equals": "=",
    "notEqual": "!=",
    "contains": "~",
}
"""The options of the grid's filters, as the symbols of a condition."""
_NUMBER_OPTIONS = [*(option for option in SYMBOLS if option != "contains"), "inRange", "blank", "notBlank"]
_TEXT_OPTIONS = ["contains", "equals", "notEqual", "blank", "notBlank"]
_FILTERS: Mapping[str, JsonObject] = {
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
    config: Config,
    metrics: Sequence[str],
    directions: Mapping[str, str] | None = None,
    *,
    empty: Collection[str] = (),
    reported: Sequence[Column] = (),
) -> list[Column]:
    """Return all columns, in the order in which they are shown; `directions` are those of the objectives, by name.

    Those that are `empty`, because no trial has a value there, are hidden at first. `reported` are those of metrics
    beside the objectives.
    """
    columns = list[Column]()
    is_repeated = (config.get("repeats") or {}).get("count", 1) > 1
    for stored in columns_in(TrialTable.PAGE | TrialTable.MENU, with_repeats=is_repeated):
        if stored.name == "values":
            columns += _result_columns(metrics, directions or {})
        elif stored.name == "metrics":
            columns += reported
        elif stored.name == "parameters":
            dimensions = dimensions_of(config.get("searchSpace"), config.get("constraints") or ())
            columns += map(_parameter_column, dimensions)
        else:
            is_hidden = TrialTable.MENU in stored.tables or stored.name in empty
            columns.append(_stored_column(stored, is_hidden=is_hidden))
    return columns


def _stored_column(stored: TrialColumn, *, is_hidden: bool) -> Column:
    usual = _WIDTHS_BY_KIND.get(stored.kind) or _width(stored.head)
    return Column(
        field=stored.name,
        head=stored.head,
        kind=_FILTER_KINDS.get(stored.kind, ""),
        width=_WIDTHS.get(stored.name, usual),
        hidden=is_hidden,
        stored=stored,
    )


def _result_columns(metrics: Sequence[str], directions: Mapping[str, str]) -> Iterator[Column]:
    for name in metrics:
        head = "Result" if name == "default" else name
        yield Column(
            field=f"value.{name}",
            head=head,
            kind="number",
            width=_width(head) + _ARROW,
            direction=directions.get(name),
        )


def reported_columns(names: FieldNames, chosen: Sequence[str] = ()) -> list[Column]:
    """Return the columns of metrics beside the objectives, and of those among the `chosen` fields.

    The first ones are shown. Of very many only some are there, the others once they are chosen by name.
    """
    metrics = [one.name for one in names.beside[:_MOST_LISTED]]
    fields = [name.partition(".") for name in chosen]
    listed = dict.fromkeys([*metrics, *(name for head, _, name in fields if head == "metrics" and name)])
    return [metric_column(name, names, hidden=place >= _MOST_SHOWN) for place, name in enumerate(listed)]


def metric_column(name: str, names: FieldNames | None = None, *, hidden: bool = False) -> Column:
    """Return the column of a metric, with the heading by which users call it among all `names`."""
    head = name if names is None else names.heading(name)
    is_text = any(not one.is_number for one in (names.metrics if names else ()) if one.name == name)
    return Column(
        field=f"metrics.{name}",
        head=head,
        kind="text" if is_text else "number",
        width=max(_width(head), _NUMBER),
        hidden=hidden,
        metric=name,
    )


def of_families(columns: Sequence[Column]) -> list[Column]:
    """Return the columns that a table of families has, without filters: a value of theirs is that of several trials."""
    kept = [column for column in columns if column.field not in _OF_SINGLE_TRIALS]
    return [
        replace(column, has_filter=False, width=max(column.width, _family_width(column))) for column in kept
    ]


def _family_width(column: Column) -> int:
    return _REPEATS if column.field == "family" else _MEAN if column.field.startswith("value.") else 0


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
