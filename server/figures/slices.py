"""Slices: the result against each parameter alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .dimensions import Dimension
from .drawing import axis_of, hover_texts, note, nothing, panels, points, value_axis
from .tables import ExperimentTable, TrialRecord
from .theme import STATUS_LOOKS, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_slice"]

_TITLE = "Slices"
_COLUMNS = 4
_MOST = 16
_JITTER = 0.25


def plot_slice(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    parameters: Sequence[str] | None = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result against each parameter, coloured by the trial's number: the later, the stronger.

    A trial is left out of the panel of a parameter that it has not. Without `parameters` at most 16 are drawn. Raises
    `KeyError` for an unknown objective or parameter.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_slice(example_table(), parameters=["lr", "layers"])
    >>> len(figure.data), figure.layout.xaxis2.title.text
    (2, 'layers')
    """
    one = table.objective(objective)
    every = table.chosen(parameters)
    chosen = every if parameters is not None else every[:_MOST]
    trials, values = table.finished(one.name)
    if not trials:
        return nothing(theme, _TITLE, "No trial has a finite result yet.")
    if not chosen:
        return nothing(theme, _TITLE, "There is no parameter that varies.")
    columns = min(_COLUMNS, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure = panels(theme, _TITLE, rows, columns)
    texts = np.array(hover_texts(table, trials), dtype=object)
    axis = value_axis(one, values)
    for place, dimension in enumerate(chosen):
        row, column = place // columns + 1, place % columns + 1
        figure.add_trace(_panel(dimension, trials, values, texts), row=row, col=column)
        figure.update_xaxes(axis_of(dimension), row=row, col=column)
        titled = axis if column == 1 else {**axis, "title": None, "showticklabels": False}
        figure.update_yaxes(titled, matches="y", row=row, col=column)
    colors = {"reversescale": True, "colorbar": {"title": {"text": "trial"}, "tickformat": "d"}}
    figure.update_layout(coloraxis=colors, showlegend=False, height=400 if rows == 1 else 120 + 250 * rows)
    if len(every) > len(chosen):
        note(figure, f"{len(chosen)} of {len(every)} parameters are shown")
    return figure


def _panel(
    dimension: Dimension, trials: Sequence[TrialRecord], values: NDArray[np.float64], texts: NDArray[Any]
) -> Any:
    places = dimension.positions([trial.parameters for trial in trials])
    has_it = np.isfinite(places)
    numbers = np.array([trial.number for trial in trials])
    shown = places[has_it] + (_spread(numbers[has_it]) if dimension.categorical else 0.0)
    trace = points(STATUS_LOOKS["SUCCEEDED"], shown, values[has_it], texts[has_it])
    marker = {"color": numbers[has_it], "coloraxis": "coloraxis", "size": 6, "opacity": 0.85}
    return trace.update(marker=marker, name=dimension.name)


def _spread(numbers: NDArray[Any]) -> NDArray[np.float64]:
    """Offsets that keep equal options from lying on each other: evenly spread, the same every time.

    >>> _spread(np.arange(3)).round(2).tolist()
    [-0.25, 0.06, -0.13]
    """
    golden = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples fill the interval evenly, whatever their number
    return ((numbers * golden) % 1.0 - 0.5) * 2 * _JITTER
