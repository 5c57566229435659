"""Parallel coordinates: every parameter an axis, every trial a line across them, the result as the last axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension, number_or_none
from .downsampling import chosen_numbers
from .drawing import base_figure, is_wide, labels, note, nothing, short, shortened, value_name, written
from .tables import ExperimentTable, Objective
from .theme import ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Parallel coordinates"
_MAX_LINES = 1000
_TICKS = 5
_ROOM = 0.08  # of an axis, between the labels of two ticks
_MOST_LETTERS = 110  # of all names, for which there is room side by side

Numbers = NDArray[np.float64]


def plot_parallel(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    max_lines: int = _MAX_LINES,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw each trial that has a result as a line across its parameters, to the result; the colour is the result.

    Parameters of nested choices have axes of their own; a trial without one passes below the axis, at `not chosen`.
    Log-uniform ones have logarithmic axes. At most `max_lines` trials are drawn.
    Raises `KeyError` for an unknown objective or parameter.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_parallel(example_table(), "loss", parameters=["lr", "optimizer.momentum"])
    >>> [dimension.label for dimension in figure.data[0].dimensions]
    ['lr', 'optimizer.momentum', 'seconds', 'loss']
    """
    import plotly.graph_objects as go

    one = table.objective(objective)
    chosen = table.chosen(parameters)
    finished, _ = table.finished(one.name)
    kept = set(chosen_numbers(finished, one, max_lines))
    trials = [trial for trial in finished if trial.number in kept]
    if not trials:
        return nothing(theme, _TITLE, "No trial has a finite result yet.")
    if not chosen:
        return nothing(theme, _TITLE, "No parameter varies.")
    points = [trial.parameters for trial in trials]
    names = labels([dimension.name for dimension in chosen], 24)
    axes = [_axis(dimension, points, name) for dimension, name in zip(chosen, names, strict=True)]
    results = [
        _result_axis(other, [trial.values.get(other.name) for trial in trials])
        for other in objectives_in_order(table, one)
    ]
    figure = base_figure(theme, _TITLE)
    # Larger numbers are drawn on top, and those have to be the better results.
    sign = -1.0 if one.direction == "minimize" else 1.0
    line = {"color": sign * results[-1]["values"], "coloraxis": "coloraxis"}
    dimensions = [{**axis, "multiselect": False} for axis in axes + results]
    is_crowded = sum(len(axis["label"]) for axis in dimensions) > _MOST_LETTERS
    angle = -20 if is_crowded else 0
    figure.add_trace(go.Parcoords(dimensions=dimensions, line=line, labelangle=angle, labelside="top"))
    last = results[-1]
    figure.update_layout(
        coloraxis={
            "reversescale": True,
            "colorbar": {
                "title": {"text": last["label"]},
                "tickvals": [sign * tick for tick in last["tickvals"]],
                "ticktext": last["ticktext"],
            },
        },
        margin={"t": 130 if is_crowded else 90, "l": 70, "r": 70},
        height=480,
    )
    if (count := len(table.outcomes.finished(one.name))) > len(trials):
        note(figure, f"{len(trials):,} of {count:,} trials are shown")
    return figure


def objectives_in_order(table: ExperimentTable, objective: Objective) -> list[Objective]:
    """Return the objectives in the order of their axes: the one that gives the colour last."""
    return [other for other in table.objectives if other.name != objective.name] + [objective]


def _result_axis(objective: Objective, values: Sequence[float | None]) -> dict[str, Any]:
    usable = [number_or_none(value) for value in values]
    numbers = np.array([math.nan if value is None else value for value in usable], dtype=np.float64)
    return _number_axis(short(value_name(objective)), numbers, log=is_wide(numbers[np.isfinite(numbers)]))


def _axis(dimension: Dimension, points: list[Any], name: str) -> dict[str, Any]:
    places = dimension.positions(points)
    if dimension.categorical:
        count = len(dimension.options)
        axis = {
            "range": [-0.3, count - 0.7],
            "tickvals": list(range(count)),
            "ticktext": [shortened(option, 16) for option in dimension.options],
            "values": places,
            "label": name,
        }
    else:
        axis = _number_axis(name, places, dimension.bounds, log=dimension.log, integer=dimension.integer)
    return _with_inactive(axis) if dimension.conditions or np.isnan(places).any() else axis


def _number_axis(
    name: str,
    values: Numbers,
    bounds: tuple[float, float] | None = None,
    *,
    log: bool = False,
    integer: bool = False,
) -> dict[str, Any]:
    """Return an axis of numbers; a logarithmic one has the logarithms as values and the numbers as labels."""
    known = values[np.isfinite(values)]
    low, high = bounds or ((known.min(), known.max()) if known.size else (0.0, 1.0))
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = (low / 2, high * 2) if log else (low - 0.5 - abs(low) / 10, high + 0.5 + abs(high) / 10)
    ends = (math.log10(low), math.log10(high)) if log else (float(low), float(high))
    ticks = _with_ends(_log_ticks(*ends) if log else _ticks(*ends, integer=integer), *ends)
    texts = [written(10.0**tick if log else float(tick)) for tick in ticks]
    shown = np.log10(values) if log else values
    return {"label": name, "values": shown, "range": list(ends), "tickvals": list(ticks), "ticktext": texts}


def _ticks(low: float, high: float, *, integer: bool) -> list[float]:
    """Return about five round numbers between two ends.

    >>> _ticks(0.0, 1.0, integer=False), _ticks(1.0, 3.0, integer=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 2.0, 3.0])
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    step = max(1.0, round(step)) if integer else step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def _with_ends(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Return ticks and the ends of their axis, without those that have no room beside an end.

    >>> _with_ends([0.0, 0.2, 0.4], -0.01, 0.5)
    [-0.01, 0.2, 0.4, 0.5]
    """
    room = _ROOM * (high - low)
    return [low, *(tick for tick in ticks if low + room < tick < high - room), high]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten between two logarithms, or the ends and the middle where there are fewer than two."""
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    if len(powers) < 2:
        return [low, (low + high) / 2, high]
    every = math.ceil(len(powers) / (_TICKS + 1))
    return [float(power) for power in powers[::every]]


def _with_inactive(axis: dict[str, Any]) -> dict[str, Any]:
    """Return the axis with a place below it for the trials that have no value there."""
    low, high = axis["range"]
    below = low - 0.15 * (high - low)
    values = np.where(np.isnan(axis["values"]), below, axis["values"])
    return {
        **axis,
        "values": values,
        "range": [below, high],
        "tickvals": [below, *axis["tickvals"]],
        "ticktext": ["not chosen", *axis["ticktext"]],
    }
