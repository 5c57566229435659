"""Contours: the result over a chosen pair of parameters, smoothed between the trials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension
from .downsampling import chosen_numbers
from .drawing import axis_of, base_figure, is_wide, note, nothing, short, spread, value_name
from .hovering import Hover
from .tables import ExperimentTable, TrialRecord
from .theme import ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Contour"
_CELLS = 48
_MOST = 2000  # trials that the surface is computed from
_MOST_MARKS = 400
_NEAREST_WEIGHT = 0.05

Numbers = NDArray[np.float64]


def plot_contour(
    table: ExperimentTable, x: str, y: str, objective: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the result over two parameters as a surface, and the trials on it.

    The surface is the mean of the trials, weighted by a Gaussian of their distance (Nadaraya 1964, Watson 1964; the
    width is Scott's), all other parameters as they happen to be; it is left blank where no trial is near. Options have
    no distance: each has the mean of its own trials. Results over more than three orders of magnitude are coloured by
    their logarithm. Raises `KeyError` for an unknown name, `ValueError` if both parameters are the same.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.type for trace in plot_contour(example_table(), "lr", "dropout").data]
    ['contour', 'scatter']
    """
    if x == y:
        raise ValueError(f"a contour needs two parameters, not '{x}' twice")
    one, across, up = table.objective(objective), table.dimension(x), table.dimension(y)
    trials, values = table.finished(one.name)
    points = [trial.parameters for trial in trials]
    usable = np.isfinite(across.positions(points)) & np.isfinite(up.positions(points))
    title = f"{_TITLE}: {short(x)} and {short(y)}"
    if not usable.any():
        return nothing(theme, title, "No trial with a finite result has both parameters.")
    kept = [trial for trial, is_usable in zip(trials, usable, strict=True) if is_usable]
    figure = base_figure(theme, title)
    shown, ticks = _colors(values[usable])
    points = [trial.parameters for trial in kept]
    if len(kept) >= 3:
        figure.add_trace(_surface(across, up, points, shown))
    some = set(chosen_numbers(kept, one, _MOST_MARKS))
    _add_trials(figure, table, (across, up), [trial for trial in kept if trial.number in some])
    bar = {"title": {"text": short(value_name(one))}, **ticks}
    colors = {"reversescale": one.direction == "maximize", "colorbar": bar}
    figure.update_layout(coloraxis=colors, showlegend=False, height=480, hovermode="closest")
    figure.update_xaxes({**axis_of(across), "showgrid": False})
    figure.update_yaxes({**axis_of(up), "showgrid": False})
    note(figure, "smoothed mean of nearby trials;\nother parameters vary")
    return figure


def _colors(values: Numbers) -> tuple[Numbers, dict[str, Any]]:
    """Return the numbers to colour, and the labels of the colour bar where those are logarithms."""
    if not is_wide(values):
        return values, {}
    logs = np.log10(values)
    powers = list(range(math.floor(logs.min()), math.ceil(logs.max()) + 1))
    return logs, {"tickvals": powers, "ticktext": [f"1e{power}" for power in powers]}


def _surface(across: Dimension, up: Dimension, points: list[Any], values: Numbers) -> Any:
    import plotly.graph_objects as go

    (columns, column_units), (rows, row_units) = _cells(across), _cells(up)
    every = max(math.ceil(len(points) / _MOST), 1)
    some = points[::every]
    units = np.stack([across.units(some), up.units(some)], axis=1)
    grid = np.stack(np.meshgrid(column_units, row_units), axis=-1).reshape(-1, 2)
    has_options = np.array([across.categorical, up.categorical])
    heights = smoothed(units, values[::every], grid, has_options).reshape(len(rows), len(columns))
    is_plain = has_options.any()
    look = {"line": {"width": 0}} if not is_plain else {}
    kind = go.Heatmap if is_plain else go.Contour
    return kind(x=columns, y=rows, z=heights, coloraxis="coloraxis", hoverinfo="skip", **look)


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
    points = [trial.parameters for trial in trials]
    figure.add_scatter(
        x=spread(axes[0], points, numbers),
        y=spread(axes[1], points, -numbers),
        mode="markers",
        marker={"color": "#f4f5f6", "size": 6, "line": {"width": 1.2, "color": "#30363d"}},
        **Hover.of(table, trials).at(),
    )
