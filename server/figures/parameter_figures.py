"""Figures of results against parameters: one parameter (slices), two (contours), or all (parallel coordinates)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension, Numbers, Points, number_or_none
from .figure_parts import (
    Hover,
    Ticks,
    axis_of,
    base_figure,
    crowded,
    is_wide,
    labels,
    note,
    nothing,
    panels,
    points,
    ranged,
    short,
    shortened,
    spread,
    value_axis,
    value_name,
    written,
)
from .tables import ExperimentTable, Objective, TrialRecord, chosen_numbers, left_out
from .theme import STATUS_LOOKS, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_NO_RESULT, _NO_PARAMETER = "No trial has a finite result yet.", "No parameter varies."
_SLICE, _CONTOUR, _PARALLEL = "Slices", "Contour", "Parallel coordinates"
_SLICE_COLUMNS = 4
_SLICE_TICKS = 3
_MOST_SLICES = 16
_MOST_SLICE_TRIALS = 2000
_CELLS = 48  # along each axis of a contour
_MOST_SURFACE_TRIALS = 2000
_MOST_CONTOUR_MARKS = 400
_NEAREST_WEIGHT = 0.05
_MOST_LINES = 1000
_TICKS = 5
_TICK_GAP = 0.08  # of an axis, between the labels of two ticks
_MOST_LETTERS = 110  # of all names, for which there is space side by side


def plot_slice(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    log: bool | None = None,
    show_all: bool = False,
    columns: int = _SLICE_COLUMNS,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result against each parameter, coloured by the trial's number: the later, the stronger.

    A trial is left out of the panels of parameters it does not have. Without `parameters` at most 16 are drawn, in rows
    of at most `columns`. `log` chooses the scale of the results, by default what suits them; `show_all` also shows
    those that would flatten the others. Raises `KeyError` for an unknown objective or parameter.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_slice(example_table(), parameters=["lr", "layers"])
    >>> len(figure.data), figure.layout.xaxis2.title.text
    (2, 'layers')
    """
    goal = table.objective(objective)
    every = table.chosen(parameters)
    shown = every if parameters is not None else every[:_MOST_SLICES]
    finished, results = table.finished(goal.name)
    numbers = set(chosen_numbers(finished, goal, _MOST_SLICE_TRIALS))
    trials = [trial for trial in finished if trial.number in numbers]
    values = results[[trial.number in numbers for trial in finished]]
    if not trials or not shown:
        return nothing(theme, _SLICE, _NO_PARAMETER if trials else _NO_RESULT)
    rows = math.ceil(len(shown) / columns)
    columns = math.ceil(len(shown) / rows)  # as evenly as possible
    figure = panels(theme, _SLICE, rows, columns)
    hover = Hover.of(table, trials, len(shown))
    axis = ranged(value_axis(goal, values, log=log, show_all=show_all), values, 0.05)
    for place, dimension in enumerate(shown):
        row, column = place // columns + 1, place % columns + 1
        figure.add_trace(_slice(dimension, trials, values, hover), row=row, col=column)
        figure.update_xaxes(axis_of(dimension, _SLICE_TICKS), row=row, col=column)
        shared = {} if place == 0 else {"matches": "y"}
        titled = axis if column == 1 else {**axis, "title": None, "showticklabels": False}
        figure.update_yaxes({**titled, **shared}, row=row, col=column)
    colors = {"reversescale": True, "colorbar": {"title": {"text": "trial"}, "tickformat": "d"}}
    figure.update_layout(coloraxis=colors, showlegend=False, height=400 if rows == 1 else 120 + 250 * rows)
    trial_count = len(table.outcomes.finished(goal.name))
    notes = (left_out(len(shown), len(every), "parameters"), left_out(len(trials), trial_count))
    note(figure, ", ".join(filter(None, notes)))
    return figure


def _slice(
    dimension: Dimension, trials: Sequence[TrialRecord], values: Numbers, hover: Hover
) -> go.Scatter | go.Scattergl:
    numbers = np.array([trial.number for trial in trials])
    places = spread(dimension, [trial.parameters for trial in trials], numbers)
    has_it = np.isfinite(places)
    trace = points(STATUS_LOOKS["SUCCEEDED"], places[has_it], values[has_it], hover.at(has_it))
    marker = {"color": numbers[has_it], "coloraxis": "coloraxis", **crowded(len(numbers))}
    return trace.update(marker=marker, name=short(dimension.name))


# ---------------------------------------------------------------------- contours


def plot_contour(
    table: ExperimentTable, x: str, y: str, objective: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the result over two parameters as a surface, and the trials on it.

    The surface is the mean of the trials, weighted by a Gaussian of their distance (Nadaraya 1964, Watson 1964; the
    width is Scott's), whatever the other parameters are; it is blank where no trial is near. Options have no distance:
    each has the mean of its own trials. Results over more than three orders of magnitude are coloured by their
    logarithm. Raises `KeyError` for an unknown name, `ValueError` if both parameters are the same.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.type for trace in plot_contour(example_table(), "lr", "dropout").data]
    ['contour', 'scatter']
    """
    if x == y:
        raise ValueError(f"a contour needs two parameters, not '{x}' twice")
    goal, across, up = table.objective(objective), table.dimension(x), table.dimension(y)
    finished, results = table.finished(goal.name)
    parameters = [trial.parameters for trial in finished]
    has_both = np.isfinite(across.positions(parameters)) & np.isfinite(up.positions(parameters))
    title = f"{_CONTOUR}: {' and '.join(labels([x, y]))}"
    if not has_both.any():
        return nothing(theme, title, "No trial with a finite result has both parameters.")
    trials = [trial for trial, is_placed in zip(finished, has_both, strict=True) if is_placed]
    figure = base_figure(theme, title)
    heights, ticks = _colors(results[has_both])
    if len(trials) >= 3:
        figure.add_trace(_surface(across, up, [trial.parameters for trial in trials], heights))
    marked = set(chosen_numbers(trials, goal, _MOST_CONTOUR_MARKS))
    _add_trials(figure, table, (across, up), [trial for trial in trials if trial.number in marked])
    bar = {"title": {"text": short(value_name(goal))}, **ticks}
    colors = {"reversescale": goal.direction == "maximize", "colorbar": bar}
    figure.update_layout(coloraxis=colors, showlegend=False, height=480, hovermode="closest")
    figure.update_xaxes({**axis_of(across), "showgrid": False})
    figure.update_yaxes({**axis_of(up), "showgrid": False})
    note(figure, "smoothed mean of nearby trials;", "other parameters vary")
    return figure


def _colors(values: Numbers) -> tuple[Numbers, Ticks]:
    """Return the numbers to colour, and the labels of the colour bar where those are logarithms."""
    if not is_wide(values):
        return values, {}
    logs = np.log10(values)
    powers = list(range(math.floor(logs.min()), math.ceil(logs.max()) + 1))
    return logs, {"tickvals": powers, "ticktext": [f"1e{power}" for power in powers]}


def _surface(
    across: Dimension, up: Dimension, parameters: Points, values: Numbers
) -> go.Contour | go.Heatmap:
    import plotly.graph_objects as go

    (columns, column_units), (rows, row_units) = _cells(across), _cells(up)
    step = max(math.ceil(len(parameters) / _MOST_SURFACE_TRIALS), 1)
    some = parameters[::step]
    units = np.stack([across.units(some), up.units(some)], axis=1)
    grid = np.stack(np.meshgrid(column_units, row_units), axis=-1).reshape(-1, 2)
    has_options = np.array([across.categorical, up.categorical])
    heights = smoothed(units, values[::step], grid, has_options).reshape(len(rows), len(columns))
    cells = {"x": columns, "y": rows, "z": heights, "coloraxis": "coloraxis", "hoverinfo": "skip"}
    return go.Heatmap(cells) if has_options.any() else go.Contour(cells, line={"width": 0})


def _cells(dimension: Dimension) -> tuple[list[float], Numbers]:
    """Return the positions of the cells along an axis, and the same in [0, 1]."""
    if dimension.categorical:
        count = len(dimension.options)
        return [float(number) for number in range(count)], (np.arange(count) + 0.5) / count
    low, high = dimension.bounds
    units = np.linspace(0.0, 1.0, _CELLS)
    if dimension.log:
        return list(np.exp(math.log(low) + units * (math.log(high) - math.log(low)))), units
    return list(low + units * (high - low)), units


def smoothed(
    units: Numbers, values: Numbers, grid: Numbers, has_options: NDArray[np.bool_] | None = None
) -> Numbers:
    """Return the weighted mean of `values`, (n,), of points (n, 2) at the places of `grid` (m, 2); NaN far from all.

    Where an axis `has_options`, (2,), only points with the same option count.

    >>> units = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> smoothed(units, np.array([1.0, 3.0]), np.array([[0.5, 0.5]]))
    array([2.])
    """
    count = len(values)
    widths = np.maximum(units.std(axis=0) * count ** (-1 / 6), 0.04)  # Scott's rule in two dimensions
    if has_options is not None:
        widths = np.where(has_options, 1e-9, widths)
    distances = (((grid[:, None, :] - units[None, :, :]) / widths) ** 2).sum(axis=2)
    weights = np.exp(-0.5 * distances)
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = weights @ values / total
    return np.where(total >= _NEAREST_WEIGHT, means, np.nan)


def _add_trials(
    figure: go.Figure, table: ExperimentTable, axes: tuple[Dimension, Dimension], trials: list[TrialRecord]
) -> None:
    """Add the trials, in a look that stands out from every colour of the surface and from both backgrounds."""
    numbers = np.array([trial.number for trial in trials])
    parameters = [trial.parameters for trial in trials]
    figure.add_scatter(
        x=spread(axes[0], parameters, numbers),
        y=spread(axes[1], parameters, -numbers),
        mode="markers",
        marker={"color": "#f4f5f6", "size": 6, "line": {"width": 1.2, "color": "#30363d"}},
        **Hover.of(table, trials).at(),
    )


# ---------------------------------------------------------------------- parallel coordinates


def plot_parallel(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    max_lines: int = _MOST_LINES,
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
    goal = table.objective(objective)
    shown = table.chosen(parameters)
    finished, _ = table.finished(goal.name)
    numbers = set(chosen_numbers(finished, goal, max_lines))
    trials = [trial for trial in finished if trial.number in numbers]
    if not trials or not shown:
        return nothing(theme, _PARALLEL, _NO_PARAMETER if trials else _NO_RESULT)
    parameters_of = [trial.parameters for trial in trials]
    names = labels([dimension.name for dimension in shown], 24)
    axes = [
        _parameter_axis(dimension, parameters_of, name) for dimension, name in zip(shown, names, strict=True)
    ]
    axes += [
        _result_axis(other, [trial.values.get(other.name) for trial in trials])
        for other in objectives_in_order(table, goal)
    ]
    figure = base_figure(theme, _PARALLEL)
    _add_lines(figure, axes, goal)
    note(figure, left_out(len(trials), len(table.outcomes.finished(goal.name))))
    return figure


def objectives_in_order(table: ExperimentTable, objective: Objective) -> list[Objective]:
    """Return the objectives in the order of their axes: the one that gives the colour last."""
    return [other for other in table.objectives if other.name != objective.name] + [objective]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LineAxis:
    """An axis of parallel coordinates: where each trial passes, the ends, and the ticks with their texts."""

    name: str
    places: Numbers
    ends: tuple[float, float]
    ticks: Sequence[float]
    texts: Sequence[str]

    def with_inactive(self) -> _LineAxis:
        """Return the axis with a place below it for the trials that have no value there."""
        low, high = self.ends
        below = low - 0.15 * (high - low)
        return replace(
            self,
            places=np.where(np.isnan(self.places), below, self.places),
            ends=(below, high),
            ticks=[below, *self.ticks],
            texts=["not chosen", *self.texts],
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
    return _number_axis(short(value_name(objective)), numbers, log=is_wide(numbers[np.isfinite(numbers)]))


def _parameter_axis(dimension: Dimension, parameters: Points, name: str) -> _LineAxis:
    places = dimension.positions(parameters)
    if dimension.categorical:
        count = len(dimension.options)
        texts = labels(dimension.options, 16, shortened)
        axis = _LineAxis(
            name=name, places=places, ends=(-0.3, count - 0.7), ticks=[*range(count)], texts=texts
        )
    else:
        axis = _number_axis(name, places, dimension.bounds, log=dimension.log, integer=dimension.integer)
    return axis.with_inactive() if dimension.conditions or np.isnan(places).any() else axis


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
    """Return powers of ten between two logarithms, or the ends and the middle where there are fewer than two."""
    powers = list(range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1))
    if len(powers) < 2:
        return [low, (low + high) / 2, high]
    every = math.ceil(len(powers) / (_TICKS + 1))
    return [float(power) for power in powers[::every]]
