"""Parallel coordinates: all parameters and results side by side, each trial a line across them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .dimensions import Dimension, Numbers, Points, number_or_none
from .figure_parts import (
    Ticks,
    base_figure,
    is_wide,
    labels,
    note,
    nothing,
    short,
    shortened,
    value_name,
    written,
)
from .shown import Shown, shown_of
from .tables import ExperimentTable, Objective
from .theme import STATUS_LOOKS, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PARALLEL, _NO_PARAMETER = "Parallel coordinates", "No parameter varies."
_HOW_IT_ENDED = "how it ended"
_MOST_LINES = 1000
_TICKS = 5
_TICK_GAP = 0.08  # of an axis, between the labels of two ticks
_MOST_LETTERS = 110  # of all names, for which there is space side by side


def plot_parallel(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    stopped: bool = True,
    max_lines: int = _MOST_LINES,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw each trial that has a result as a line across its parameters, to the result; the colour is the result.

    `objective` may be any metric that trials report. The other objectives, and what is limited, have axes as well.
    Early-stopped trials count with their last result, unless `stopped` is False; where not all trials succeeded and
    kept the limits, an axis says how each ended. Parameters of nested choices have axes of their own; a trial without
    one passes below the axis, at `not chosen`. Log-uniform ones have logarithmic axes. At most `max_lines` trials are
    drawn. Raises `KeyError` for an unknown metric or parameter.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_parallel(example_table(), "loss", parameters=["lr", "optimizer.momentum"])
    >>> [dimension.label for dimension in figure.data[0].dimensions]
    ['lr', 'optimizer.momentum', 'how it ended', 'seconds', 'loss']
    """
    goal = table.metric(objective)
    chosen = table.chosen(parameters)
    shown = shown_of(table, goal, stopped=stopped)
    looks = looks_on_an_axis(shown)
    shown = shown.at_most(max_lines, goal)
    if not shown.trials or not chosen:
        return nothing(theme, _PARALLEL, _NO_PARAMETER if shown.trials else shown.nothing)
    points = [trial.parameters for trial in shown.trials]
    names = labels([dimension.name for dimension in chosen], 24)
    axes = [_parameter_axis(dimension, points, name) for dimension, name in zip(chosen, names, strict=True)]
    if looks:
        places = np.array([looks.index(look) for look in shown.looks], dtype=np.float64)
        axes.append(_option_axis(_HOW_IT_ENDED, places, [look.name for look in looks]))
    axes += [
        _result_axis(other, [table.value(trial, other.name) for trial in shown.trials])
        for other in metrics_in_order(table, goal)
    ]
    figure = base_figure(theme, _PARALLEL)
    _add_lines(figure, axes, goal)
    note(figure, *shown.notes)
    return figure


def looks_on_an_axis(shown: Shown) -> list[Look]:
    """Return the looks of trials in the order in which the axis that says how they ended has them; none if all are one.

    A look is a part of the axis, whichever of the trials are drawn.
    """
    looks = list(shown.groups)
    return looks if looks != [STATUS_LOOKS["SUCCEEDED"]] else []


def metrics_in_order(table: ExperimentTable, goal: Objective) -> list[Objective]:
    """Return the metrics that have axes, in their order: the objectives, what is limited, and what gives the colour."""
    others = dict.fromkeys([*table.objectives, *table.limits])
    return [*(other for other in others if other.name != goal.name), goal]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineAxis:
    """An axis of parallel coordinates: where each trial passes, the ends, and the ticks with their texts."""

    name: str
    places: Numbers
    ends: tuple[float, float]
    ticks: Sequence[float]
    texts: Sequence[str]

    def with_inactive(self, word: str) -> _LineAxis:
        """Return the axis with a place below it, named by a word, for the trials that have no value there."""
        low, high = self.ends
        below = low - 0.15 * (high - low)
        return replace(
            self,
            places=np.where(np.isnan(self.places), below, self.places),
            ends=(below, high),
            ticks=[below, *self.ticks],
            texts=[word, *self.texts],
        )


def _add_lines(figure: go.Figure, axes: Sequence[_LineAxis], goal: Objective) -> None:
    """Add the lines across the axes. The last axis, that of the goal, gives the colour."""
    # Larger numbers are drawn on top, and those have to be the better results.
    last, sign = axes[-1], -goal.sign
    line = {"color": sign * last.places, "coloraxis": "coloraxis"}
    dimensions = [
        {
            "label": axis.name,
            "values": axis.places,
            "range": axis.ends,
            "tickvals": axis.ticks,
            "ticktext": axis.texts,
            "multiselect": False,
        }
        for axis in axes
    ]
    is_crowded = sum(len(axis.name) for axis in axes) > _MOST_LETTERS
    angle = -20 if is_crowded else 0
    figure.add_parcoords(dimensions=dimensions, line=line, labelangle=angle, labelside="top")
    ticks = Ticks(tickvals=[sign * tick for tick in last.ticks], ticktext=last.texts)
    figure.update_layout(
        coloraxis={"reversescale": True, "colorbar": {"title": {"text": last.name}, **ticks}},
        margin={"t": 130 if is_crowded else 90, "l": 70, "r": 70},
        height=480,
    )


def _result_axis(objective: Objective, values: Sequence[float | None]) -> _LineAxis:
    usable = [number_or_none(value) for value in values]
    numbers = np.array([math.nan if value is None else value for value in usable], dtype=np.float64)
    axis = _number_axis(short(value_name(objective)), numbers, log=is_wide(numbers[np.isfinite(numbers)]))
    return axis.with_inactive("none") if np.isnan(numbers).any() else axis


def _option_axis(name: str, places: Numbers, texts: Sequence[str]) -> _LineAxis:
    count = len(texts)
    return _LineAxis(name=name, places=places, ends=(-0.3, count - 0.7), ticks=[*range(count)], texts=texts)


def _parameter_axis(dimension: Dimension, parameters: Points, name: str) -> _LineAxis:
    places = dimension.positions(parameters)
    if dimension.categorical:
        axis = _option_axis(name, places, labels(dimension.options, 16, shortened))
    else:
        axis = _number_axis(name, places, dimension.bounds, log=dimension.log, integer=dimension.integer)
    return axis.with_inactive("not chosen") if dimension.conditions or np.isnan(places).any() else axis


def _number_axis(
    name: str,
    values: Numbers,
    bounds: tuple[float, float] | None = None,
    *,
    log: bool = False,
    integer: bool = False,
) -> _LineAxis:
    """Return an axis of numbers; a logarithmic one has the logarithms as places and the numbers as texts."""
    finite = values[np.isfinite(values)]
    low, high = bounds or ((finite.min(), finite.max()) if finite.size else (0.0, 1.0))
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = (low / 2, high * 2) if log else (low - 0.5 - abs(low) / 10, high + 0.5 + abs(high) / 10)
    ends = (math.log10(low), math.log10(high)) if log else (float(low), float(high))
    ticks = _with_ends(_log_ticks(*ends) if log else _ticks(*ends, integer=integer), *ends)
    texts = [written(10.0**tick if log else float(tick)) for tick in ticks]
    return _LineAxis(
        name=name, places=np.log10(values) if log else values, ends=ends, ticks=ticks, texts=texts
    )


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
    """Return ticks and the ends of their axis, without those whose labels would touch that of an end.

    >>> _with_ends([0.0, 0.2, 0.4], -0.01, 0.5)
    [-0.01, 0.2, 0.4, 0.5]
    """
    gap = _TICK_GAP * (high - low)
    return [low, *(tick for tick in ticks if low + gap < tick < high - gap), high]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the logarithms of round numbers between two logarithms: powers of ten, or of few 2 and 5 times these, too.

    >>> [round(10**tick) for tick in _log_ticks(math.log10(16), math.log10(256))]
    [20, 50, 100, 200]
    """
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    if high - low >= 2:
        every = math.ceil(len(powers) / (_TICKS + 1))
        return [float(power) for power in powers[::every]]
    first = math.floor(low)
    ticks = [
        power + part for power in range(first, first + 4) for part in (0.0, math.log10(2), math.log10(5))
    ]
    inside = [tick for tick in ticks if low - 1e-9 <= tick <= high + 1e-9]
    return inside if len(inside) > 1 else [low, (low + high) / 2, high]
