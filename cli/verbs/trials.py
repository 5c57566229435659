"""`pitchpipe trials`: the trials of an experiment as a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...runner import TrialStatus
from ...store.reading import (
    Condition,
    ExperimentView,
    FamilyRow,
    Goal,
    QueryError,
    TrialColumn,
    TrialQuery,
    TrialRow,
    TrialTable,
    columns_in,
    family_object,
    to_json,
    trial_object,
)
from ...telling import column_text, parameters_text, repeats_text, value_text, violation_text
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import print_table
from ..verb import WholeNumber, experiment_options, verb

_STATUSES = [status.value for status in TrialStatus]
_ORDERS = ("number", "best", "highest", "lowest", "longest", "latest")
_OBJECTIVE = re.compile(r"-?value\.(.+)")


class _Order(click.Choice[str]):
    """The name of an order, or an objective: `value.ms` for the lowest first, `-value.ms` for the highest first."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the order."""
        try:
            return value if _OBJECTIVE.fullmatch(value) else super().convert(value, param, ctx)
        except click.BadParameter as error:
            how = (
                "To sort by an objective, write value.NAME or -value.NAME; other metrics cannot be sorted by."
            )
            self.fail(f"{error.message} {how}", param, ctx)


@verb(
    "trials",
    "pitchpipe trials",
    "pitchpipe trials k3x9a2bq --sort best --limit 10 --status SUCCEEDED",
    "pitchpipe trials --where \"parameters.lr < 0.1 and status == 'FAILED'\" --json",
    "pitchpipe trials --families --sort best",
    "pitchpipe trials --sort value.default",
)
@experiment_options
@click.option(
    "--sort", type=_Order(_ORDERS), default="number", show_default=True,
    help="Sort by number, result (best, the front of several objectives, highest or lowest first), duration (longest"
    " first) or end (latest first); by an objective with value.NAME (lowest first) or -value.NAME (highest first).",
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
    help="Show only trials for which it holds: FIELD < VALUE, with <= > >= == != or ~ (contains); `and` joins several.",
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
    limit: int,
    statuses: tuple[str, ...],
    where: str | None,
    as_json: bool,
    families: bool,
) -> None:
    """List the trials of an experiment with results, parameters and why they failed.

    The fields of a condition are sequence_id, status, reason, kind, duration, attempt, value, last, parameters.NAME,
    value.NAME (an objective) and the other columns of docs/reference/http.md.
    """
    if families and where is not None:
        raise Failure("--families lists configurations: give it without --where")
    with ExperimentView(chosen_experiment(experiment, experiment_id, directory)) as view:
        names, objective = view.metric_names(), view.objectives()[0]
        _check_order(sort, names)
        field, descending = _order(sort, objective)
        query = TrialQuery(statuses=statuses, sort=field, descending=descending, limit=limit or None)
        portion = _families(view, query, objective) if families else _trials(view, query, where)
        # By number, the newest are shown, as the last lines; in every other order, the first.
        rows = portion.rows[::-1] if sort == "number" else portion.rows
        marks, limits = ({}, {}) if as_json else (_marks(view), view.limits())
        numbers = [] if families or not as_json else [trial.sequence_id for trial in rows]
        results = view.results_of(numbers)
    if as_json:
        listed = [
            family_object(row)
            if isinstance(row, FamilyRow)
            else trial_object(row, [*results.get(row.sequence_id, {}).values()])
            for row in rows
        ]
        click.echo(to_json(listed).decode())
        return
    noun = "families" if families else "trials"
    if not rows and portion.total:
        click.echo(f"none of {portion.total} {noun} matches")
        return
    columns = columns_in(TrialTable.TERMINAL, with_repeats=any(row.family is not None for row in rows))
    cells = _Cells(names=names, marks=marks, limits=limits)
    head = [text for column in columns for text in cells.heads(column)]
    lines = [[text for column in columns for text in cells.of(row, column)] for row in rows]
    print_table(head, lines, len(head) - 2)  # the parameters give way
    if len(rows) < portion.matching:
        click.echo(f"{len(rows)} of {portion.matching} {noun}; --limit 0 shows all", err=True)


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
        raise Failure(f"--where: {error}") from error
    return _Portion(page.trials, page.total, page.total or view.trials(TrialQuery(limit=0)).total)


def _families(view: ExperimentView, query: TrialQuery, objective: Goal) -> _Portion:
    """Return the families; those without a value come last in every order."""
    families = view.families()
    if not families:
        raise Failure("the configurations of this experiment run once: it has no repeats")
    matching = [family for family in families if not query.statuses or family.status in query.statuses]
    if query.sort == "best":
        ordered = sorted(matching, key=_rank_in(view, objective))
    else:
        head, _, name = query.sort.partition(".")

        def value_of(family: FamilyRow) -> Any:
            return family.values.get(name) if head == "value" else getattr(family, head)

        known = [family for family in matching if value_of(family) is not None]
        known.sort(key=value_of, reverse=query.descending)
        ordered = [*known, *(family for family in matching if value_of(family) is None)]
    return _Portion(ordered[: query.limit], len(ordered), len(families))


def _rank_in(
    view: ExperimentView, objective: Goal
) -> Callable[[FamilyRow], tuple[bool, int, bool, bool, float]]:
    """Return the key of the order `best`, which SQL has for trials: the means of families are not rows in the database.

    Families that keep the limits come first: the front, then those with all their repeats, since other means are less
    certain, each by the first objective. Those that violate the limits follow, the closest to the limits first.
    """
    front, sign = view.front(), -1.0 if objective.direction == "maximize" else 1.0
    places = {number: place for place, number in enumerate(front.infeasible, start=1)}

    def rank(family: FamilyRow) -> tuple[bool, int, bool, bool, float]:
        number, value = family.sequence_id, family.values.get(objective.name)
        # A family that the end of the experiment cut off has no place among those that violate the limits.
        is_beyond = violation_text(family.values, front.limits)
        excess = places.get(number, len(places) + 1) if is_beyond else 0
        is_behind, is_cut = number not in front.trials, family.family_end != "complete"
        return value is None, excess, is_behind, is_cut, 0.0 if value is None else sign * value

    return rank


def _marks(view: ExperimentView) -> dict[int, str]:
    """Return the mark for each trial (or family) on the Pareto front; empty for a single objective."""
    if len(view.objectives()) < 2:
        return {}
    front = view.front()
    return {number: "knee" if number == front.knee else "yes" for number in front.trials}


def _check_order(sort: str, names: list[str]) -> None:
    """Raise `Failure` for an order by an objective that the experiment does not have."""
    if (objective := _OBJECTIVE.fullmatch(sort)) and objective[1] not in names:
        possible = " or ".join(f"value.{name}" for name in names)
        raise Failure(f"--sort: there is no objective '{objective[1]}': write {possible}")


def _order(sort: str, objective: Goal) -> tuple[str, bool]:
    """Return the field to sort by, and whether the largest comes first."""
    if _OBJECTIVE.fullmatch(sort):
        return sort.removeprefix("-"), sort.startswith("-")
    result = f"value.{objective.name}"
    return {
        "number": ("sequence_id", True),
        "best": ("best", False),
        "highest": (result, True),
        "lowest": (result, False),
        "longest": ("duration", True),
        "latest": ("end_time", True),
    }[sort]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cells:
    """The texts of the table, with the metrics `names`, the `marks` of the front and the violated `limits`."""

    names: Sequence[str]
    marks: Mapping[int, str]
    limits: Mapping[str, str]

    def heads(self, column: TrialColumn) -> list[str]:
        if column.name != "values":
            return ["#" if column.name == "sequence_id" else column.short_head]
        results = self.names if len(self.names) > 1 else [column.short_head]
        return [*results, *(["front"] if self.marks else [])]

    def of(self, trial: TrialRow, column: TrialColumn) -> list[str]:
        match column.name:
            case "family":
                return [repeats_text(trial) or f"{trial.family}, repeat {trial.repeat}"]
            case "status":
                return [trial.status]
            case "values":
                number = trial.sequence_id if trial.family is None else trial.family
                results = [value_text(trial, name) for name in self.names]
                return [*results, *([self.marks.get(number, "")] if self.marks else [])]
            case "parameters":
                return [parameters_text(trial.parameters)]
            case _:
                return [column_text(trial, column, self.limits)]
