"""`pitchpipe trials`: the trials of an experiment as a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...store.reading import (
    Condition,
    ExperimentView,
    FamilyRow,
    Goal,
    QueryError,
    TrialQuery,
    TrialRow,
    duration_text,
    family_object,
    parameters_text,
    reason_text,
    repeats_text,
    to_json,
    trial_object,
    value_text,
    violation_text,
)
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import print_table
from ..verb import WholeNumber, experiment_options, verb

__all__ = ["trials"]

_STATUSES = (
    "WAITING",
    "RUNNING",
    "PAUSED",
    "SUCCEEDED",
    "FAILED",
    "EARLY_STOPPED",
    "USER_CANCELED",
    "SYS_CANCELED",
)
_ORDERS = ("number", "best", "highest", "lowest", "longest", "latest")
_OBJECTIVE = re.compile(r"-?value\.(.+)")


class _Order(click.Choice[str]):
    """An order, or an objective as in conditions: `value.ms` has the lowest first, `-value.ms` the highest."""

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
        if families:
            found = _families(view, sort, statuses, objective)
            shown, total, everything = _portion(found, sort, limit), len(found), len(view.families())
        else:
            try:
                conditions = [] if where is None else Condition.parse_all(where)
                page = view.trials(replace(_query(sort, limit, statuses, objective), conditions=conditions))
            except QueryError as error:
                raise Failure(f"--where: {error}") from error
            # By number, the newest are the ones to see; in every other order, the first.
            shown, total = page.trials[::-1] if sort == "number" else page.trials, page.total
            everything = total or view.trials(TrialQuery(limit=0)).total
        marks, limits = ({}, {}) if as_json else (_marks(view), view.summary().outcome_limits)
        numbers = [] if families or not as_json else [trial.sequence_id for trial in shown]
        results = view.results_of(numbers)
    if as_json:
        listed = [
            family_object(one)
            if isinstance(one, FamilyRow)
            else trial_object(one, [*results.get(one.sequence_id, {}).values()])
            for one in shown
        ]
        click.echo(to_json(listed).decode())
        return
    if not shown and everything:
        click.echo(f"none of {everything} {'families' if families else 'trials'} matches")
        return
    is_repeated = any(trial.family is not None for trial in shown)
    columns = names if len(names) > 1 else ("result",)
    fronts = ["front"] * bool(marks)
    head = ("#", "id", *["family"] * is_repeated, "status", *columns, *fronts, "took", "parameters", "reason")
    print_table(head, [_row(trial, names, is_repeated, marks, limits) for trial in shown], len(head) - 2)
    if len(shown) < total:
        click.echo(
            f"{len(shown)} of {total} {'families' if families else 'trials'}; --limit 0 shows all", err=True
        )


def _marks(view: ExperimentView) -> dict[int, str]:
    """Return for several objectives what to write beside the trials of the front, or its families; else nothing."""
    if len(view.objectives()) < 2:
        return {}
    front = view.front()
    return {number: "knee" if number == front.knee else "yes" for number in front.trials}


def _families(view: ExperimentView, sort: str, statuses: tuple[str, ...], objective: Goal) -> list[FamilyRow]:
    """Return the families in order; those without a value come last."""
    found = view.families()
    if not found:
        raise Failure("the configurations of this experiment run once: it has no repeats")
    field, descending = _order(sort, objective)
    if field == "best":
        return _best_first(view, found, objective, statuses)
    head, _, name = field.partition(".")
    chosen = [one for one in found if not statuses or one.status in statuses]
    values = [one.values.get(name) if head == "value" else getattr(one, field) for one in chosen]
    known = [(value, one) for value, one in zip(values, chosen, strict=True) if value is not None]
    ordered = sorted(known, key=lambda pair: pair[0], reverse=descending and sort != "number")
    return [one for _, one in ordered] + [
        one for value, one in zip(values, chosen, strict=True) if value is None
    ]


def _best_first(
    view: ExperimentView, found: list[FamilyRow], objective: Goal, statuses: tuple[str, ...]
) -> list[FamilyRow]:
    """Return the families that keep the limits first: the front, then whole ones, each by the first objective.

    Those that violate them follow, the closest to the limits first. The mean of a family that got fewer
    repeats is less certain.
    """
    front, sign = view.front(), -1.0 if objective.direction == "maximize" else 1.0
    broken = {number: rank for rank, number in enumerate(front.infeasible, start=1)}

    def place(family: FamilyRow) -> tuple[bool, int, bool, bool, float]:
        number, value = family.sequence_id, family.values.get(objective.name)
        is_behind, is_cut = number not in front.trials, family.family_end != "complete"
        # One that the end of the experiment cut off has no rank among those that violate the limits.
        is_beyond = violation_text(family.values, front.limits)
        excess = broken.get(number, len(broken) + 1) if is_beyond else 0
        return value is None, excess, is_behind, is_cut, 0.0 if value is None else sign * value

    return sorted((one for one in found if not statuses or one.status in statuses), key=place)


def _portion(found: list[FamilyRow], sort: str, limit: int) -> list[FamilyRow]:
    return found if not limit else found[-limit:] if sort == "number" else found[:limit]


def _query(sort: str, limit: int, statuses: tuple[str, ...], objective: Goal) -> TrialQuery:
    field, descending = _order(sort, objective)
    return TrialQuery(statuses=statuses, sort=field, descending=descending, limit=limit or None)


def _check_order(sort: str, names: list[str]) -> None:
    """Raise `Failure` for an order by an objective that the experiment does not have."""
    if (found := _OBJECTIVE.fullmatch(sort)) and found[1] not in names:
        known = " or ".join(f"value.{name}" for name in names)
        raise Failure(f"--sort: there is no objective '{found[1]}': write {known}")


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


def _row(
    trial: TrialRow,
    names: list[str],
    is_repeated: bool,
    marks: dict[int, str],
    limits: Mapping[str, str],
) -> tuple[str, ...]:
    took = trial.seconds
    family = repeats_text(trial) or f"{trial.family}, repeat {trial.repeat}"
    return (
        str(trial.sequence_id),
        trial.trial_id,
        *[family] * is_repeated,
        trial.status,
        *(value_text(trial, name) if name in trial.values else "" for name in names),
        *[marks.get(trial.sequence_id if trial.family is None else trial.family, "")] * bool(marks),
        "" if took is None else duration_text(took),
        parameters_text(trial.parameters),
        reason_text(trial, limits),
    )
