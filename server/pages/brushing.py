"""Ranges brushed on parallel coordinates, as a condition for the table of trials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem

from ...store.reading import spelled_field
from ..figures import Dimension, ExperimentTable, Shown, looks_on_an_axis, metrics_in_order, shown_of

_LAST_POWER = 308.0  # of ten among floats

Range = Sequence[float] | None


@dataclass(frozen=True, slots=True)
class Brush:
    """What the table of trials needs to show those within brushed ranges: a condition, and their statuses."""

    where: str
    statuses: tuple[str, ...]


def brushed(
    table: ExperimentTable,
    ranges: Sequence[Range],
    objective: str | None = None,
    parameters: Sequence[str] | None = None,
    *,
    stopped: bool = True,
) -> Brush:
    """Return the condition for the trials within the ranges brushed on parallel coordinates, as the table takes it.

    There is a range, or None, for each axis of `plot_parallel`. A trial without a brushed parameter does not match, nor
    does one without a final result where results are brushed. Results at a step have no condition.

    >>> from pitchpipe.server.figures import example_table
    >>> brushed(example_table(), [(-3.0, -2.0), None, None, None], "loss", ["lr"])
    Brush(where='parameters.lr >= 0.001 and parameters.lr <= 0.01', statuses=('EARLY_STOPPED', 'SUCCEEDED'))
    """
    chosen, goal = table.chosen(parameters), table.metric(objective)
    conditions: list[str] = []
    for dimension, range_ in zip(chosen, ranges, strict=False):
        if range_ is not None and dimension.categorical:
            conditions += _of_options(dimension, range_, table)
        elif range_ is not None:
            conditions += _of_numbers(dimension, range_)
    shown = shown_of(table, goal, stopped=stopped)
    others = list(ranges[len(chosen) :])
    ended = others.pop(0) if others and looks_on_an_axis(shown) else None
    for metric, range_ in zip(metrics_in_order(table, goal), others, strict=False):
        if range_ is not None and table.step is None:
            head = "final" if metric.name in table.metrics else "value"
            conditions += _between(f"{head}.{metric.name}", *range_)
    return Brush(" and ".join(conditions), _statuses(shown, ended))


def _statuses(shown: Shown, ended: Range) -> tuple[str, ...]:
    """Return the statuses of the trials within a range of the axis that says how they ended."""
    looks = looks_on_an_axis(shown)
    low, high = (-1.0, float(len(looks))) if ended is None else ended
    inside = [look for place, look in enumerate(looks) if low <= place <= high]
    pairs = zip(shown.trials, shown.looks, strict=True)
    return tuple(sorted({trial.status for trial, look in pairs if not looks or look in inside}))


def _between(field: str, low: float, high: float) -> list[str]:
    field = spelled_field(field)
    return [f"{field} >= {low:.6g}", f"{field} <= {high:.6g}"]


def _of_numbers(dimension: Dimension, range_: Sequence[float]) -> list[str]:
    low, high = (10.0 ** min(end, _LAST_POWER) if dimension.log else end for end in range_)
    return _between(dimension.field, low, high)


def _of_options(dimension: Dimension, range_: Sequence[float], table: ExperimentTable) -> Iterator[str]:
    """Yield a condition for the only option in the range, or one for each outside; and that there is a value."""
    low, high = range_
    field = spelled_field(dimension.field)
    inside = [option for place, option in enumerate(dimension.options) if low <= place <= high]
    if len(inside) == 1:
        yield f"{field} = {_raw(dimension, inside[0], table)}"
        return
    outside = [option for option in dimension.options if option not in inside]
    yield from (f"{field} != {_raw(dimension, option, table)}" for option in outside)
    if dimension.conditions and outside and "null" not in dimension.options:
        yield f"{field} != null"  # != alone finds the trials that do not have it


def _raw(dimension: Dimension, option: str, table: ExperimentTable) -> str:
    """Return an option as JSON, as the trials have it; its label if no trial has it."""
    for trial in table.trials:
        if dimension.value(trial.parameters) == option:
            return json.dumps(reduce(getitem, dimension.path, trial.parameters))
    return json.dumps(option)
