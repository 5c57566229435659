"""The columns and rows of the table of trials, as AG Grid asks for them: a request is a query of the store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from ...protocol import Config, JsonObject
from ...store import Annotation, Annotations
from ...store.reading import (
    Condition,
    ExperimentView,
    QueryError,
    TrialColumn,
    TrialQuery,
    TrialRow,
    TrialTable,
    columns_in,
)
from ...telling import column_text, number_text, visible
from ..figures import Dimension, dimensions_of
from .elements import TRIAL_TONES


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: `field` is the field of a trial query, `head` its heading.

    `kind` is `number`, `text`, or empty for a column that cannot be filtered; `path` leads to a parameter's value,
    `direction` is that of an objective, which the first click sorts best first. The others are `stored` columns.
    """

    field: str
    head: str
    kind: str = ""
    width: int = 110
    hidden: bool = False
    path: tuple[str, ...] = ()
    direction: str | None = None
    stored: TrialColumn | None = None

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
            **(_TONE if self.field == "status" else {}),
            **({"sortable": False} if self.field in _NOTED else {}),
            **({"sortingOrder": _ORDERS[self.direction]} if self.direction else {}),
        }


_NOTED = ("tags", "note")  # the store has no order for what people noted
_ORDERS: Mapping[str, list[str]] = {"maximize": ["desc", "asc"], "minimize": ["asc", "desc"]}
_TONE = {":cellClass": "cell => cell.data?.tone ?? ''"}
# Of the kinds of values that can be filtered.
_FILTER_KINDS: Mapping[str, str] = {"number": "number", "duration": "number", "text": "text"}
_WIDTHS: Mapping[str, int] = {"sequence_id": 82, "trial_id": 100, "status": 112, "reason": 380, "note": 260}
_WIDTHS_BY_KIND: Mapping[str, int] = {"text": 140, "moment": 170, "duration": 110}
_ARROW = 25  # of the column that is sorted
_NUMBER = 125  # six digits after 0.000
_ONE_CONDITION = {"maxNumConditions": 1, "debounceMs": 150}
# The options of the grid's filters, as the symbols of a condition.
_SYMBOLS: Mapping[str, str] = {
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
    "equals": "=",
    "notEqual": "!=",
    "contains": "~",
}
_NUMBER_OPTIONS = [*(option for option in _SYMBOLS if option != "contains"), "inRange", "blank", "notBlank"]
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
) -> list[Column]:
    """Return all columns, in the order in which they are shown; `directions` are those of the objectives, by name.

    Those that are `empty`, because no trial has a value there, are hidden at first.
    """
    columns = list[Column]()
    is_repeated = (config.get("repeats") or {}).get("count", 1) > 1
    for stored in columns_in(TrialTable.PAGE | TrialTable.MENU, with_repeats=is_repeated):
        if stored.name == "values":
            columns += _metric_columns(metrics, directions or {})
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


_MOST_ROWS = 500
_STAR = '<span class="pp-star" title="{}">{}</span>'


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRequest:
    """A request of the grid: rows `start` to `end` - 1 that match search, condition, statuses and filters.

    `where` is a condition as `pitchpipe trials --where` takes it; without `sort` the best trial comes first.
    """

    start: int = 0
    end: int = 100
    search: str = ""
    where: str = ""
    statuses: Sequence[str] = ()
    sort: Sequence[JsonObject] = ()
    filters: Mapping[str, JsonObject] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, start: int, end: int, search: str, status: str, sort: str, filters: str, where: str = ""
    ) -> GridRequest:
        """Parse the query of the address, with AG Grid's models `sort` and `filters` as JSON; raise `QueryError`."""
        statuses = [word for word in status.split(",") if word]
        try:
            models = json.loads(sort or "[]"), json.loads(filters or "{}")
        except ValueError as error:
            raise QueryError(f"sort and filter have to be JSON: {error}") from error
        if not isinstance(models[0], list) or not isinstance(models[1], dict):
            raise QueryError("sort has to be a list, filter an object")
        return cls(
            start=start,
            end=end,
            search=search,
            where=where,
            statuses=statuses,
            sort=models[0],
            filters=models[1],
        )

    def query(self) -> TrialQuery:
        """Return the equivalent query of the store; raise `QueryError` if there is none.

        >>> request = GridRequest(filters={"parameters.lr": {"type": "lessThan", "filter": 0.1}})
        >>> request.query().conditions
        (Condition(field='parameters.lr', symbol='<', value=0.1),)
        """
        conditions = tuple(
            condition for name, model in self.filters.items() for condition in _conditions(name, model)
        )
        conditions += tuple(Condition.parse_all(self.where) if self.where.strip() else ())
        by = self.sort[0] if self.sort else {"colId": "best"}
        return TrialQuery(
            statuses=tuple(self.statuses),
            conditions=conditions,
            search=self.search,
            sort=str(by.get("colId")),
            descending=by.get("sort") == "desc",
            offset=max(0, self.start),
            limit=max(0, min(self.end - self.start, _MOST_ROWS)),
        )


def _conditions(name: str, model: JsonObject) -> Iterator[Condition]:
    kind, value = str(model.get("type")), model.get("filter")
    if kind == "blank":
        yield Condition(name, "=", None)
    elif kind == "notBlank":
        yield Condition(name, "!=", None)
    elif kind == "inRange":
        yield Condition(name, ">=", value)
        yield Condition(name, "<=", model.get("filterTo"))
    elif kind in _SYMBOLS:
        yield Condition(name, _SYMBOLS[kind], value)
    else:
        raise QueryError(
            f"'{kind}' is not a filter; valid are {', '.join(_SYMBOLS)}, inRange, blank, notBlank"
        )


class Block(TypedDict):
    """Some rows, as texts by field, with number and address of their trials, and the number of all rows."""

    rows: list[JsonObject]
    total: int


def read_rows(
    view: ExperimentView, columns: Sequence[Column], request: GridRequest, trial_root: str
) -> Block:
    """Return the rows that a request is for."""
    page = view.trials(request.query())
    stars, limits = _stars(view), view.limits()
    noted = Annotations(view.folder).all()
    rows = []
    for trial in page.trials:
        annotation = noted.get(trial.sequence_id, Annotation())
        star = stars.get(trial.sequence_id, "")
        rows.append(_row(trial, annotation, columns, trial_root, limits, star=star))
    return {"rows": rows, "total": page.total}


def _stars(view: ExperimentView) -> dict[int, str]:
    """Return the HTML that marks the best trial, or the Pareto front and its knee, by number."""
    best = [trial.sequence_id for trial in view.best()]
    if len(best) < 2:
        return dict.fromkeys(best, _STAR.format("the best", "★"))
    knee = [trial.sequence_id for trial in view.best(1, "knee")]
    front = dict.fromkeys(best, _STAR.format("on the Pareto front", "★"))
    return front | dict.fromkeys(knee, _STAR.format("the knee of the Pareto front", "✦"))


def _row(
    trial: TrialRow,
    annotation: Annotation,
    columns: Sequence[Column],
    trial_root: str,
    limits: Mapping[str, str],
    *,
    star: str,
) -> JsonObject:
    number = trial.sequence_id
    address = f"{trial_root}/{number}"
    row: JsonObject = {"number": number, "address": address, "tone": TRIAL_TONES.get(trial.status, "")}
    for column in columns:
        if text := _text(trial, annotation, column, limits):
            row[column.field] = text
    # The only HTML cell: made of a number, an address of these pages, and constant words.
    row["sequence_id"] = f'{star}<a href="{address}">{number}</a>'
    return row


def _text(trial: TrialRow, annotation: Annotation, column: Column, limits: Mapping[str, str]) -> str:
    """Return the text of a cell; empty without a value."""
    if column.path:
        value = trial.parameters
        for step in column.path:
            if not isinstance(value, Mapping) or step not in value:
                return ""
            value = value[step]
        return number_text(value)  # null may be an option
    if column.stored is None:
        result = trial.values.get(column.field.removeprefix("value."))
        return "" if result is None else number_text(result)
    match column.field:
        case "last" if trial.status == "SUCCEEDED":
            return ""  # its result says it
        case "tags":
            return visible(", ".join(annotation.tags))
        case "note":
            return visible(annotation.note)
        case _:
            return visible(column_text(trial, column.stored, limits))
