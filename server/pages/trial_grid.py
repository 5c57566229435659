"""The rows of the table of trials, as AG Grid asks for them: a request is a query of the store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from ...protocol import Json, JsonObject
from ...store import Annotation, Annotations
from ...store.reading import Condition, ExperimentView, FamilyRow, QueryError, TrialQuery, TrialRow
from ...telling import (
    column_text,
    metric_text,
    number_text,
    repeats_text,
    value_text,
    violation_text,
    visible,
)
from .elements import TRIAL_TONES
from .grid_columns import SYMBOLS, Column

_MOST_ROWS = 500
_LONGEST_CELL = 300
_BROKEN = '<span class="pp-limit" title="violates a limit">!</span>'
_STAR = '<span class="pp-star" title="{}">{}</span>'


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRequest:
    """A request of the grid: rows `start` to `end` - 1 that match search, condition, statuses and filters.

    `where` is a condition as `pitchpipe trials --where` takes it; without `sort` the best trial comes first. A request
    for `families` has an order and statuses only.
    """

    start: int = 0
    end: int = 100
    search: str = ""
    where: str = ""
    statuses: Sequence[str] = ()
    sort: Sequence[JsonObject] = ()
    filters: Mapping[str, JsonObject] = field(default_factory=dict)
    families: bool = False

    @classmethod
    def parse(
        cls,
        start: int,
        end: int,
        search: str,
        status: str,
        sort: str,
        filters: str,
        where: str = "",
        *,
        families: bool = False,
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
            families=families,
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


def metrics_of(text: str) -> list[str]:
    """Return the names of metrics in a JSON list; raise `QueryError` for anything else.

    >>> metrics_of('["train_loss"]'), metrics_of("")
    (['train_loss'], [])
    """
    try:
        names = json.loads(text or "[]")
    except ValueError as error:
        raise QueryError(f"metrics have to be JSON: {error}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise QueryError("metrics have to be a list of names")
    return names


def _conditions(name: str, model: JsonObject) -> Iterator[Condition]:
    kind, value = str(model.get("type")), model.get("filter")
    if kind == "blank":
        yield Condition(name, "=", None)
    elif kind == "notBlank":
        yield Condition(name, "!=", None)
    elif kind == "inRange":
        yield Condition(name, ">=", value)
        yield Condition(name, "<=", model.get("filterTo"))
    elif kind in SYMBOLS:
        yield Condition(name, SYMBOLS[kind], value)
    else:
        raise QueryError(
            f"'{kind}' is not a filter; valid are {', '.join(SYMBOLS)}, inRange, blank, notBlank"
        )


class Block(TypedDict):
    """Some rows, as texts by field, with number and address of their trials, and the number of all rows."""

    rows: list[JsonObject]
    total: int


def read_rows(
    view: ExperimentView, columns: Sequence[Column], request: GridRequest, trial_root: str
) -> Block:
    """Return the rows that a request is for."""
    query = request.query()
    page = view.family_page(query) if request.families else view.trials(query)
    about = _About(
        stars=_stars(view),
        limits=view.limits(),
        noted=Annotations(view.folder).all(),
        reported=view.metric_values(page.trials, [one.metric for one in columns if one.metric is not None]),
    )
    return {"rows": [_row(trial, columns, trial_root, about) for trial in page.trials], "total": page.total}


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """What rows have beside their trials: stars, notes and metrics by number, and the limits by metric."""

    stars: Mapping[int, str]
    limits: Mapping[str, str]
    noted: Mapping[int | None, Annotation]
    reported: Mapping[int, Mapping[str, Json]]


def _stars(view: ExperimentView) -> dict[int, str]:
    """Return the HTML that marks the best trial, or the Pareto front and its knee, by number."""
    best = [trial.sequence_id for trial in view.best()]
    if len(best) < 2:
        return dict.fromkeys(best, _STAR.format("the best", "★"))
    knee = [trial.sequence_id for trial in view.best(1, "knee")]
    front = dict.fromkeys(best, _STAR.format("on the Pareto front", "★"))
    return front | dict.fromkeys(knee, _STAR.format("the knee of the Pareto front", "✦"))


def _row(trial: TrialRow, columns: Sequence[Column], trial_root: str, about: _About) -> JsonObject:
    number = trial.sequence_id
    address = f"{trial_root}/{number}"
    broken = [
        f"value.{name}"
        for name, value in trial.values.items()
        if name in about.limits and violation_text({name: value}, about.limits)
    ]
    tone = "warn" if broken else TRIAL_TONES.get(trial.status, "")
    row: JsonObject = {"number": number, "address": address, "tone": tone, "broken": broken}
    for column in columns:
        if text := _text(trial, column, about):
            row[column.field] = text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}…"
    # The only HTML cell: made of a number, an address of these pages, and constant words.
    mark = _BROKEN if broken else about.stars.get(number, "")
    row["sequence_id"] = f'{mark}<a href="{address}">{number}</a>'
    return row


def _text(trial: TrialRow, column: Column, about: _About) -> str:
    """Return the text of a cell; empty without a value."""
    if column.path:
        value = trial.parameters
        for step in column.path:
            if not isinstance(value, Mapping) or step not in value:
                return ""
            value = value[step]
        return number_text(value)  # null may be an option
    if column.metric is not None:
        return metric_text(about.reported[trial.sequence_id].get(column.metric))
    if column.stored is None:
        return value_text(trial, column.field.removeprefix("value."))
    annotation = about.noted.get(trial.sequence_id, Annotation())
    match column.field:
        case "last" if trial.status == "SUCCEEDED":
            return ""  # its result says it
        case "family" if isinstance(trial, FamilyRow):
            return repeats_text(trial)
        case "tags":
            return visible(", ".join(annotation.tags))
        case "note":
            return visible(annotation.note)
        case _:
            return visible(column_text(trial, column.stored, about.limits))
