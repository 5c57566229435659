"""`pitchpipe trials`: the trials of an experiment as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...protocol import Json
from ...runner import TrialStatus
from ...store import Annotation, Annotations
from ...store.reading import (
    ORDERS,
    Condition,
    ExperimentView,
    FamilyRow,
    FieldNames,
    QueryError,
    TrialColumn,
    TrialQuery,
    TrialRow,
    TrialTable,
    columns_in,
    family_object,
    flat,
    split_names,
    to_json,
    trial_object,
)
from ...telling import (
    column_text,
    metric_text,
    number_text,
    parameters_text,
    repeats_text,
    value_text,
    violation_text,
)
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import print_table
from ..verb import WholeNumber, experiment_options, verb

_STATUSES = [status.value for status in TrialStatus]
_MOST_METRICS = 3  # beside the objectives, unless columns are chosen
_MOST_NAMED = 12


class _Order(click.Choice[str]):
    """The word for an order, or the name of a column: `ms` for the lowest first, `-ms` for the highest first."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the order, which the experiment has to know."""
        return str(value)


@verb(
    "trials",
    "pitchpipe trials",
    "pitchpipe trials k3x9a2bq --sort best --limit 10 --status SUCCEEDED",
    "pitchpipe trials --where \"parameters.lr < 0.1 and status == 'FAILED'\" --json",
    "pitchpipe trials --families --sort best",
    "pitchpipe trials --sort -duration --columns status,result,took",
)
@experiment_options
@click.option(
    "--sort", type=_Order(ORDERS), default="number", show_default=True,
    help="Sort by number, result (best, the front of several objectives, highest or lowest first), duration (longest"
    " first) or end (latest first); by a column with its name (lowest first) or -NAME (highest first).",
)  # fmt: skip
@click.option(
    "--columns", metavar="NAMES",
    help="Show these columns after the number, separated by commas: metrics, parameters, and those of tables.",
)  # fmt: skip
@click.option(
    "--limit",
    type=WholeNumber(min=0),
    default=100,
    show_default=True,
    help="Show at most this many (0 = all).",
)
@click.option(
    "--status", "statuses", multiple=True, type=click.Choice(_STATUSES, case_sensitive=False),
    help="Show only trials with this status; may be repeated.",
)  # fmt: skip
@click.option(
    "--where", metavar="CONDITION",
    help="Show only trials for which it holds: NAME < VALUE, with <= > >= == != or ~ (contains); `and` joins several.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, with all results.")
@click.option(
    "--families", is_flag=True, help="Where configurations are run several times: one line for each, with the mean."
)  # fmt: skip
def trials(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    sort: str,
    columns: str | None,
    limit: int,
    statuses: tuple[str, ...],
    where: str | None,
    as_json: bool,
    families: bool,
) -> None:
    """List the trials of an experiment with results, metrics, parameters and why they failed.

    The headings of columns are their names in --sort, --where and --columns: train_loss, lr, status, took. A field has
    a longer name, which no other has: metrics.NAME (reported last), value.NAME (an objective), final.NAME,
    parameters.NAME, last, duration and the other columns of docs/reference/http.md.
    """
    if families and where is not None:
        raise Failure("--families lists configurations: give it without --where")
    if as_json and columns is not None:
        raise Failure("--json has all columns: give it without --columns")
    with ExperimentView(chosen_experiment(experiment, experiment_id, directory)) as view:
        chosen = None if columns is None else _chosen(view, columns)
        field, descending = _order(view, sort)
        query = TrialQuery(statuses=statuses, sort=field, descending=descending, limit=limit or None)
        portion = _families(view, query) if families else _trials(view, query, where)
        # By number, the newest are shown, as the last lines; in every other order, the first.
        rows = portion.rows[::-1] if sort == "number" else portion.rows
        if as_json:
            click.echo(to_json(_objects(view, rows)).decode())
            return
        table = _Table.read(view, rows, chosen)
    noun = "families" if families else "trials"
    if not rows and portion.total:
        click.echo(f"none of {portion.total} {noun} matches")
        return
    print_table(table.heads, map(table.line, rows), table.giving_way)
    if len(rows) < portion.matching:
        click.echo(f"{len(rows)} of {portion.matching} {noun}; --limit 0 shows all", err=True)
    if table.left_out:
        click.echo(f"more metrics: {table.left_out}; --columns NAMES shows others", err=True)


@dataclass(frozen=True, slots=True)
class _Portion:
    """The rows of a query, the number of rows without its limit, and the number of rows without its conditions."""

    rows: Sequence[TrialRow]
    matching: int
    total: int


def _trials(view: ExperimentView, query: TrialQuery, where: str | None) -> _Portion:
    try:
        conditions = [] if where is None else Condition.parse_all(where)
        page = view.trials(replace(query, conditions=conditions))
    except QueryError as error:
        raise Failure(f"{'--sort' if where is None else '--where'}: {error}") from error
    return _Portion(page.trials, page.total, page.total or view.trials(TrialQuery(limit=0)).total)


def _families(view: ExperimentView, query: TrialQuery) -> _Portion:
    if view.repeats() < 2:
        raise Failure("the configurations of this experiment run once: it has no repeats")
    try:
        page = view.family_page(query)
    except QueryError as error:
        raise Failure(f"--sort: {error}") from error
    return _Portion(page.trials, page.total, page.total or view.family_page(TrialQuery(limit=0)).total)


def _objects(view: ExperimentView, rows: Sequence[TrialRow]) -> list[dict[str, object]]:
    """Return the rows as `--json` has them, with all results of trials."""
    results = view.results_of([row.sequence_id for row in rows if not isinstance(row, FamilyRow)])
    return [
        family_object(row)
        if isinstance(row, FamilyRow)
        else trial_object(row, [*results.get(row.sequence_id, {}).values()])
        for row in rows
    ]


def _order(view: ExperimentView, sort: str) -> tuple[str, bool]:
    """Return the field to sort by, and whether the largest comes first; raise `Failure`."""
    result = f"value.{view.objectives()[0].name}"
    words = {
        "number": ("sequence_id", True),
        "best": ("best", False),
        "highest": (result, True),
        "lowest": (result, False),
        "longest": ("duration", True),
        "latest": ("end_time", True),
    }
    if sort in words:
        return words[sort]
    try:
        return view.field(sort.removeprefix("-")), sort.startswith("-")
    except QueryError as error:
        raise Failure(f"--sort: {error}") from error


def _chosen(view: ExperimentView, columns: str) -> list[str]:
    """Return the fields of these columns; raise `Failure`."""
    names = split_names(columns)
    if not names:
        raise Failure("--columns names no column: write names such as status,result,took")
    try:
        return [name if name == "parameters" else view.field(name) for name in names]
    except QueryError as error:
        raise Failure(f"--columns: {error}") from error


_Column = tuple[str, Callable[[TrialRow], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Each column with its heading and the text of its cells; `left_out` names further metrics."""

    columns: Sequence[_Column]
    left_out: str

    @classmethod
    def read(cls, view: ExperimentView, rows: Sequence[TrialRow], chosen: Sequence[str] | None) -> _Table:
        """Return the table with the chosen fields, or the usual columns."""
        names = view.names()
        metrics = [one.name for one in names.beside]
        shown = metrics[:_MOST_METRICS] if chosen is None else _metrics_in(chosen)
        cells = _Cells(
            objectives=view.metric_names(),
            main=view.main_objective(),
            marks=view.marks().get("front", {}),
            limits=view.limits(),
            reported=view.metric_values(rows, shown),
            noted=Annotations(view.folder).all(),
            names=names,
        )
        if chosen is not None:
            return cls(columns=[cells.number, *map(cells.of_field, chosen)], left_out="")
        left = [names.heading(name) for name in metrics[_MOST_METRICS:]]
        more = f" and {len(left) - _MOST_NAMED:,} more" if len(left) > _MOST_NAMED else ""
        usual = cells.usual(shown, with_repeats=any(row.family is not None for row in rows))
        return cls(columns=[*usual], left_out=f"{', '.join(left[:_MOST_NAMED])}{more}")

    @property
    def heads(self) -> list[str]:
        return [head for head, _ in self.columns]

    @property
    def giving_way(self) -> int | None:
        """The place of the parameters, which are cut or left out on a narrow terminal."""
        return self.heads.index("parameters") if "parameters" in self.heads else None

    def line(self, row: TrialRow) -> list[str]:
        return [text(row) for _, text in self.columns]


def _metrics_in(fields: Sequence[str]) -> list[str]:
    return [name for head, _, name in (field.partition(".") for field in fields) if head == "metrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """Makes columns; `marks` are those of the front, `reported` the metrics by trial, `noted` what people noted."""

    objectives: Sequence[str]
    main: str
    marks: Mapping[int, str]
    limits: Mapping[str, str]
    reported: Mapping[int, Mapping[str, Json]]
    noted: Mapping[int | None, Annotation]
    names: FieldNames

    @property
    def number(self) -> _Column:
        return "#", lambda row: str(row.sequence_id)

    def usual(self, metrics: Sequence[str], *, with_repeats: bool) -> Iterator[_Column]:
        """Yield the usual columns, with these metrics."""
        for column in columns_in(TrialTable.TERMINAL, with_repeats=with_repeats):
            match column.name:
                case "sequence_id":
                    yield self.number
                case "values":
                    yield from self._results(column)
                case "metrics":
                    yield from (self.of_field(f"metrics.{name}") for name in metrics)
                case _:
                    yield self._stored(column)

    def _results(self, column: TrialColumn) -> Iterator[_Column]:
        for name in self.objectives:
            yield self._objective(name if len(self.objectives) > 1 else column.short_head, name)
        if self.marks:
            yield self.of_field("front")
        if self.limits:
            yield self.of_field("limits")

    def _objective(self, head: str, name: str) -> _Column:
        return head, lambda row: value_text(row, name)

    def _stored(self, column: TrialColumn) -> _Column:
        match column.name:
            case "family":
                return "family", lambda row: repeats_text(row) or f"{row.family}, repeat {row.repeat}"
            case "status":
                return "status", lambda row: row.status
            case "parameters":
                return "parameters", lambda row: parameters_text(row.parameters)
            case "tags":
                return "tags", lambda row: ", ".join(self.noted.get(row.sequence_id, Annotation()).tags)
            case "note":
                return "note", lambda row: self.noted.get(row.sequence_id, Annotation()).note
            case _:
                head = column.short_head or column.name
                return head, lambda row: column_text(row, column, self.limits)

    def of_field(self, field: str) -> _Column:
        """Return the column of a field."""
        head, _, name = field.partition(".")
        match head:
            case "value":
                name = self.main if name in ("", "default") else name
                return self._objective("result" if len(self.objectives) == 1 else name, name)
            case "metrics":
                heading = self.names.heading(name)
                return heading, lambda row: metric_text(self.reported[row.sequence_id].get(name))
            case "final":
                return field, lambda row: metric_text(flat(row.final, "final").get(field))
            case "front":
                return field, lambda row: self.marks.get(_compared(row), "")
            case "limits":
                return field, lambda row: "violated" if violation_text(row.values, self.limits) else ""
            case "sequence_id":
                return self.number
            case "parameters" if name:
                heading = name if self.names.field(name) == field else field
                return heading, lambda row: _parameter_text(row, name)
            case _:
                (column,) = (
                    one for one in columns_in(TrialTable.WHERE | TrialTable.PAGE) if one.name == field
                )
                return self._stored(column)


def _compared(row: TrialRow) -> int:
    """Return the number of what is compared with others: a trial, or the family of one."""
    return row.sequence_id if row.family is None else row.family


def _parameter_text(row: TrialRow, name: str) -> str:
    found = flat(row.parameters)
    values = (found[one] for one in (f"{name}._name", name) if one in found)
    return next(map(number_text, values), "")
