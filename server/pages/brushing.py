"""The ranges brushed on parallel coordinates, as the condition that the table of trials takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...store.reading import spelled_field
from ..figures import Dimension, ExperimentTable, objectives_in_order

__all__ = ["brushed"]

Range = Sequence[float] | None
_LAST_POWER = 308.0  # of ten among floats


def brushed(
    table: ExperimentTable,
    ranges: Sequence[Range],
    objective: str | None = None,
    parameters: Sequence[str] | None = None,
) -> str:
    """Return the condition for the trials within the ranges, one for each axis of `plot_parallel`; None is no range.

    A trial that does not have a brushed parameter does not match.

    >>> from pitchpipe.server.figures import example_table
    >>> brushed(example_table(), [(-3.0, -2.0), None, None], "loss", ["lr"])
    'parameters.lr >= 0.001 and parameters.lr <= 0.01'
    """
    chosen = table.chosen(parameters)
    found: list[str] = []
    for dimension, range_ in zip(chosen, ranges, strict=False):
        if range_ is not None:
            words = (
                _of_options(dimension, range_, table)
                if dimension.categorical
                else _of_numbers(dimension, range_)
            )
            found += words
    for one, range_ in zip(
        objectives_in_order(table, table.objective(objective)), ranges[len(chosen) :], strict=False
    ):
        if range_ is not None:
            found += _between(f"value.{one.name}", *range_)
    return " and ".join(found)


def _between(field: str, low: float, high: float) -> list[str]:
    field = spelled_field(field)
    return [f"{field} >= {low:.6g}", f"{field} <= {high:.6g}"]


def _of_numbers(dimension: Dimension, range_: Sequence[float]) -> list[str]:
    low, high = (10.0 ** min(end, _LAST_POWER) if dimension.log else end for end in range_)
    return _between(dimension.field, low, high)


def _of_options(dimension: Dimension, range_: Sequence[float], table: ExperimentTable) -> Iterator[str]:
    """Yield a condition for the option that is left, or for each that is left out, and for a value."""
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
    """Return an option as JSON, as the trials have it; its label if none has."""
    for trial in table.trials:
        if dimension.value(trial.parameters) == option:
            value: Any = trial.parameters
            for step in dimension.path:
                value = value.get(step) if isinstance(value, Mapping) else None
            return json.dumps(value)
    return json.dumps(option)
