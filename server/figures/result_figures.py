"""Optimisation history: the result of each trial, and the best one so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import corners, note, nothing, panels, points, ranged, value_axis
from .hovering import Hover
from .tables import ExperimentTable, Objective
from .theme import BEST, STATUS_LOOKS, VERMILION, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "History"
_MARKS = {
    "EARLY_STOPPED": STATUS_LOOKS["EARLY_STOPPED"],
    "FAILED": STATUS_LOOKS["FAILED"],
    "SUCCEEDED": Look("result not finite", VERMILION, "triangle-up-open"),
}
_ENDED = tuple(_MARKS)


def plot_history(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    log: bool | None = None,
    show_all: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result of each trial by its number, and the best so far; without `objective` one panel each.

    Trials that failed, were stopped early or ended without a finite result are marks along the bottom. `log` chooses
    the scale of the results, by default what suits them; `show_all` also shows those that would flatten the others.
    Raises `KeyError` for an unknown objective.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.name for trace in plot_history(example_table(), "loss").data]
    ['succeeded', 'best so far', 'stopped early', 'failed']
    """
    chosen = table.objectives if objective is None else (table.objective(objective),)
    if not any(trial.status in _ENDED for trial in table.trials):
        return nothing(theme, _TITLE, "No trial has ended yet.")
    figure = panels(theme, _TITLE, len(chosen), 1, shared_x=True, marks=True)
    for row, one in enumerate(chosen, start=1):
        marks = _marks(table, one)
        traces = [(trace, False) for trace in _results(table, one)] + [(mark, True) for mark in marks]
        for trace, is_mark in traces:
            trace.update(legendgroup=trace.name, showlegend=row == 1)
            figure.add_trace(trace, row=row, col=1, secondary_y=is_mark)
        values = table.outcomes.results(one.name)
        axis = value_axis(one, values, log=log, show_all=show_all)
        axis = ranged(axis, values, 0.16 if marks else 0.05)
        figure.update_yaxes(axis, row=row, col=1, secondary_y=False)
    if not any(len(table.finished(one.name)[0]) for one in chosen):
        figure.add_annotation(text="No trial has a finite result.", x=0.5, y=0.5, xref="paper", yref="paper")
    if table.left_out:
        note(figure, table.left_out)
    figure.update_xaxes(title_text="trial", tickformat=",d", row=len(chosen), col=1)
    return figure.update_layout(height=420 if len(chosen) == 1 else 120 + 240 * len(chosen))


def _results(table: ExperimentTable, objective: Objective) -> list[Any]:
    """Draw the results as points, and the best so far as a line."""
    import plotly.graph_objects as go

    trials, values = table.finished(objective.name)
    if not trials:
        return []
    numbers = np.array([trial.number for trial in trials])
    x, y = corners(*table.outcomes.best_line(objective, table.limits))
    best = go.Scatter(
        x=x,
        y=y,
        mode="lines",
        name="best so far",
        line={"shape": "hv", "width": 2.5, "color": BEST},
        hovertemplate="best so far: %{y:.5g}<extra></extra>",
    )
    return [points(STATUS_LOOKS["SUCCEEDED"], numbers, values, Hover.of(table, trials).at()), best]


def _marks(table: ExperimentTable, objective: Objective) -> list[Any]:
    """Mark the trials that ended without a result along the bottom: each kind of end at its own height."""
    found = []
    for height, (status, look) in enumerate(_MARKS.items()):
        lost = [one for one in table.trials if one.status == status and one.value(objective.name) is None]
        if lost:
            heights = np.full(len(lost), 0.02 + 0.03 * height)
            found.append(points(look, [trial.number for trial in lost], heights, Hover.of(table, lost).at()))
    return found
