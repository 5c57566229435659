"""Slices: the result against each parameter alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension
from .downsampling import chosen_numbers
from .drawing import axis_of, crowded, note, nothing, panels, points, ranged, short, spread, value_axis
from .hovering import Hover
from .tables import ExperimentTable, TrialRecord
from .theme import STATUS_LOOKS, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Slices"
_COLUMNS = 4
_MOST = 16
_TICKS = 3
_MOST_TRIALS = 2000


def plot_slice(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    log: bool | None = None,
    show_all: bool = False,
    columns: int = _COLUMNS,
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
    one = table.objective(objective)
    every = table.chosen(parameters)
    chosen = every if parameters is not None else every[:_MOST]
    finished, every_value = table.finished(one.name)
    kept = set(chosen_numbers(finished, one, _MOST_TRIALS))
    trials = [trial for trial in finished if trial.number in kept]
    values = every_value[[trial.number in kept for trial in finished]]
    if not trials:
        return nothing(theme, _TITLE, "No trial has a finite result yet.")
    if not chosen:
        return nothing(theme, _TITLE, "No parameter varies.")
    rows = math.ceil(len(chosen) / columns)
    columns = math.ceil(len(chosen) / rows)  # as evenly as possible
    figure = panels(theme, _TITLE, rows, columns)
    hover = Hover.of(table, trials, len(chosen))
    axis = ranged(value_axis(one, values, log=log, show_all=show_all), values, 0.05)
    for place, dimension in enumerate(chosen):
        row, column = place // columns + 1, place % columns + 1
        figure.add_trace(_panel(dimension, trials, values, hover), row=row, col=column)
        figure.update_xaxes(axis_of(dimension, _TICKS), row=row, col=column)
        shared = {} if place == 0 else {"matches": "y"}
        titled = axis if column == 1 else {**axis, "title": None, "showticklabels": False}
        figure.update_yaxes({**titled, **shared}, row=row, col=column)
    colors = {"reversescale": True, "colorbar": {"title": {"text": "trial"}, "tickformat": "d"}}
    figure.update_layout(coloraxis=colors, showlegend=False, height=400 if rows == 1 else 120 + 250 * rows)
    results = table.outcomes.results(one.name)
    left_out = [(len(chosen), len(every), "parameters"), (len(trials), len(results), "trials")]
    shown = [f"{some:,} of {all_:,} {what} are shown" for some, all_, what in left_out if some < all_]
    if shown:
        note(figure, ", ".join(shown))
    return figure


def _panel(
    dimension: Dimension, trials: Sequence[TrialRecord], values: NDArray[np.float64], hover: Hover
) -> Any:
    numbers = np.array([trial.number for trial in trials])
    places = spread(dimension, [trial.parameters for trial in trials], numbers)
    has_it = np.isfinite(places)
    trace = points(STATUS_LOOKS["SUCCEEDED"], places[has_it], values[has_it], hover.at(has_it))
    marker = {"color": numbers[has_it], "coloraxis": "coloraxis", **crowded(len(numbers))}
    return trace.update(marker=marker, name=short(dimension.name))
