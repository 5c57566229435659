"""Figures of results against parameters: one parameter (slices), or two (contours)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension, Numbers, Points, existing_together
from .figure_parts import (
    COLOR_BAR,
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
    spread,
    value_axis,
    value_title,
    within_reach,
    written,
)
from .importances import importance
from .shown import Shown, shown_of
from .tables import ExperimentTable, Objective, left_out
from .theme import GREY, STATUS_LOOKS, VIOLATES, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_NO_PARAMETER = "No parameter varies."
_SLICE, _CONTOUR = "Slices", "Contour"
_SLICE_COLUMNS = 4
_SLICE_TICKS = 3
_MOST_SLICES = 16
_MOST_SLICE_TRIALS = 2000
_CELLS = 48  # along each axis of a contour
_MOST_POWERS = 12  # of ten, as labels of a colour bar
_MOST_SURFACE_TRIALS = 2000
_MOST_CONTOUR_MARKS = 400
_NEAREST_WEIGHT = 0.05
_CONTOUR_TICKS = 4  # fit side by side on a phone
# A surface has every colour, and so have the backgrounds: marks are bright, or grey, with a dark edge.
_EDGE = {"width": 1.2, "color": "#30363d"}
_MARK = {"color": "#f4f5f6", "size": 6, "line": _EDGE}
_MARKS = {
    STATUS_LOOKS["EARLY_STOPPED"]: {**_MARK, "color": GREY},
    VIOLATES: {**_MARK, "symbol": "x"},
}


def plot_slice(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    stopped: bool = True,
    log: bool | None = None,
    show_all: bool = False,
    columns: int = _SLICE_COLUMNS,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result against each parameter, coloured by the trial's number: the later, the stronger.

    `objective` may be any metric that trials report. Early-stopped trials are open circles at their last result, unless
    `stopped` is False; those that violate a limit are crosses. A trial is left out of the panels of parameters it does
    not have. Without `parameters` at most 16 are drawn, in rows of at most `columns`. `log` chooses the scale of the
    results, by default what suits them; `show_all` also shows those that would flatten the others. Raises `KeyError`
    for an unknown metric or parameter.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_slice(example_table(), parameters=["lr", "layers"])
    >>> figure.layout.xaxis2.title.text, [trace.name for trace in figure.data if trace.showlegend]
    ('layers', ['succeeded', 'stopped early'])
    """
    goal = table.metric(objective)
    every = table.chosen(parameters)
    drawn = every if parameters is not None else every[:_MOST_SLICES]
    shown = shown_of(table, goal, stopped=stopped).at_most(_MOST_SLICE_TRIALS, goal)
    if not shown.trials or not drawn:
        return nothing(theme, _SLICE, _NO_PARAMETER if shown.trials else shown.nothing)
    rows = math.ceil(len(drawn) / columns)
    columns = math.ceil(len(drawn) / rows)  # as evenly as possible
    figure = panels(theme, _SLICE, rows, columns)
    hover = Hover.of(table, shown.trials, len(drawn))
    axis = ranged(value_axis(goal, shown.values, log=log, show_all=show_all), shown.values, 0.05)
    for place, dimension in enumerate(drawn):
        row, column = place // columns + 1, place % columns + 1
        for trace in _slices(dimension, shown, hover):
            figure.add_trace(trace, row=row, col=column)
        figure.update_xaxes(axis_of(dimension, _SLICE_TICKS), row=row, col=column)
        shared = {} if place == 0 else {"matches": "y"}
        titled = axis if column == 1 else {**axis, "title": None, "showticklabels": False}
        figure.update_yaxes({**titled, **shared}, row=row, col=column)
    colors = {"reversescale": True, "colorbar": {"title": {"text": "trial"}, "tickformat": "d"}}
    figure.add_traces(_legend(shown))
    figure.update_layout(coloraxis=colors, height=400 if rows == 1 else 120 + 250 * rows)
    count, *more = shown.notes
    notes = (left_out(len(drawn), len(every), "parameters"), count)
    note(figure, ", ".join(filter(None, notes)), *more, beyond=COLOR_BAR)
    return figure


def _slices(dimension: Dimension, shown: Shown, hover: Hover) -> Iterator[go.Scatter | go.Scattergl]:
    """Yield the points of one panel, those of each look together."""
    places = spread(dimension, [trial.parameters for trial in shown.trials], shown.numbers)
    for look, mask in shown.groups.items():
        has_it = mask & np.isfinite(places)
        trace = points(look, places[has_it], shown.values[has_it], hover.at(has_it))
        marker = {"color": shown.numbers[has_it], "coloraxis": "coloraxis", "symbol": look.symbol}
        yield trace.update(
            marker={**marker, **crowded(len(shown.trials), look)}, legendgroup=look.name, showlegend=False
        )


def _legend(shown: Shown) -> list[go.Scatter]:
    """Return traces without points that name the looks, if there are several: the colours of points say when."""
    import plotly.graph_objects as go

    looks = list(shown.groups)
    if len(looks) < 2:
        return []
    marker = {"color": GREY, "size": 7}
    return [
        go.Scatter(
            x=[None],
            y=[None],
            mode="markers",
            name=look.name,
            legendgroup=look.name,
            showlegend=True,
            marker={**marker, "symbol": look.symbol},
            hoverinfo="skip",
        )
        for look in looks
    ]


# ---------------------------------------------------------------------- contours


def contour_axes(
    table: ExperimentTable, objective: str | None = None, important: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the two parameters to start with; fewer if fewer vary.

    They are the first two, the `important` ones before the others, that exist in the same trials; by default what
    matters most for the objective comes first.

    >>> from pitchpipe.server.figures import example_table
    >>> contour_axes(example_table(), important=["dropout", "layers"])
    ('dropout', 'layers')
    """
    varying = {dimension.name: dimension for dimension in table.dimensions if dimension.varies}
    first = importance(table, objective).names if important is None else important
    in_order = [varying[name] for name in dict.fromkeys([*first, *varying]) if name in varying]
    return tuple(dimension.name for dimension in existing_together(in_order)) if in_order else ()


def plot_contour(
    table: ExperimentTable,
    x: str | None = None,
    y: str | None = None,
    objective: str | None = None,
    *,
    stopped: bool = True,
    show_all: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result over two parameters as a surface, and the trials on it.

    Without `x` and `y` they are the two parameters that matter most. `objective` may be any metric that trials report.
    Early-stopped trials count with their last result, unless `stopped` is False, and are faint; those that violate a
    limit are crosses.

    The surface is the mean of the trials, weighted by a Gaussian of their distance (Nadaraya 1964, Watson 1964; the
    width is Scott's), whatever the other parameters are; it is blank where no trial is near. Options have no distance:
    each has the mean of its own trials. Results over more than three orders of magnitude are coloured by their
    logarithm; in others, those so bad that the differences between the rest would disappear have the colour of the
    worst of the rest, unless `show_all` is set. Raises `KeyError` for an unknown name, `ValueError` if both parameters
    are the same.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.type for trace in plot_contour(example_table(), "lr", "dropout").data]
    ['contour', 'scatter', 'scatter']
    """
    goal = table.metric(objective)
    if x is None or y is None:
        names = [name for name in contour_axes(table, objective) if name not in (x, y)]
        if len(names) + (x is not None) + (y is not None) < 2:
            return nothing(theme, _CONTOUR, "A contour needs two parameters that vary.")
        x, y = (names.pop(0) if name is None else name for name in (x, y))
    if x == y:
        raise ValueError(f"a contour needs two parameters, not '{x}' twice")
    across, up = table.dimension(x), table.dimension(y)
    every = shown_of(table, goal, stopped=stopped)
    parameters = [trial.parameters for trial in every.trials]
    has_both = np.isfinite(across.positions(parameters)) & np.isfinite(up.positions(parameters))
    title = f"{_CONTOUR}: {' and '.join(labels([x, y]))}"
    if not has_both.any():
        return nothing(theme, title, "No trial with a finite result has both parameters.")
    shown = every.where(has_both)
    figure = base_figure(theme, title)
    heights, ticks, outside = _colors(shown.values, goal, show_all=show_all)
    if len(shown.trials) >= 3:
        figure.add_trace(_surface(across, up, [trial.parameters for trial in shown.trials], heights))
    _add_trials(figure, table, (across, up), shown.at_most(_MOST_CONTOUR_MARKS, goal))
    bar = {"title": {"text": value_title(goal, outside)}, **ticks}
    colors = {"reversescale": goal.direction == "maximize", "colorbar": bar}
    figure.update_layout(coloraxis=colors, height=480, hovermode="closest")
    figure.update_xaxes({**axis_of(across, _CONTOUR_TICKS), "showgrid": False})
    figure.update_yaxes({**axis_of(up), "showgrid": False})
    lines = ("smoothed mean of nearby trials;", "other parameters vary", *shown.notes[1:])
    note(figure, *lines, beyond=COLOR_BAR)
    return figure


def _colors(values: Numbers, goal: Objective, *, show_all: bool) -> tuple[Numbers, Ticks, int]:
    """Return the numbers to colour, the labels of the colour bar if they are logarithms, and how many are clipped."""
    if is_wide(values):
        logs = np.log10(values)
        first, last = math.floor(logs.min()), math.ceil(logs.max())
        powers = range(first, last + 1, math.ceil((last - first) / _MOST_POWERS))
        return logs, {"tickvals": [*powers], "ticktext": [written(10.0**power) for power in powers]}, 0
    kept = values if show_all else within_reach(values, goal.direction)
    heights = np.clip(values, kept.min(), kept.max())
    return heights, {}, int((heights != values).sum())


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
    figure: go.Figure, table: ExperimentTable, axes: tuple[Dimension, Dimension], shown: Shown
) -> None:
    """Add the trials, in looks that stand out from every colour of the surface and from both backgrounds."""
    parameters = [trial.parameters for trial in shown.trials]
    x = spread(axes[0], parameters, shown.numbers)
    y = spread(axes[1], parameters, -shown.numbers)
    hover, groups = Hover.of(table, shown.trials), shown.groups
    for look, mask in groups.items():
        marker: dict[str, Any] = _MARKS.get(look, _MARK)
        figure.add_scatter(
            x=x[mask],
            y=y[mask],
            mode="markers",
            name=look.name,
            showlegend=len(groups) > 1,
            marker=marker,
            **hover.at(mask),
        )
