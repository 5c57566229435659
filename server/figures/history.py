"""Optimisation history: the result of each trial, and the best one so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .drawing import best_so_far, hover_texts, nothing, panels, points, value_axis, value_name
from .tables import ExperimentTable, Objective, TrialRecord
from .theme import STATUS_LOOKS, VERMILION, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_history"]

_TITLE = "History"


def plot_history(
    table: ExperimentTable, objective: str | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the result of each trial by its number, and the best so far; without `objective` one panel each.

    Trials that were stopped early stand at their last result, those that ended without a finite one are marks at the
    bottom. Raises `KeyError` for an unknown objective.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.name for trace in plot_history(example_table(), "loss").data]
    ['succeeded', 'stopped early', 'best so far', 'failed']
    """
    chosen = table.objectives if objective is None else (table.objective(objective),)
    if not any(trial.status in ("SUCCEEDED", "EARLY_STOPPED", "FAILED") for trial in table.trials):
        return nothing(theme, _TITLE, "No trial has ended yet.")
    figure = panels(theme, _TITLE, len(chosen), 1, shared_x=True, marks=True)
    for row, one in enumerate(chosen, start=1):
        _add_panel(figure, table, one, row)
    figure.update_xaxes(title_text="trial", row=len(chosen), col=1)
    return figure.update_layout(height=420 if len(chosen) == 1 else 120 + 240 * len(chosen))


def _add_panel(figure: go.Figure, table: ExperimentTable, objective: Objective, row: int) -> None:
    import plotly.graph_objects as go

    done, values = table.finished(objective.name)
    stopped = _stopped(table, objective)
    for status, trials, heights in (
        ("SUCCEEDED", done, values),
        ("EARLY_STOPPED", stopped, np.array([trial.last for trial in stopped], dtype=np.float64)),
    ):
        if trials:
            numbers = np.array([trial.number for trial in trials])
            trace = points(STATUS_LOOKS[status], numbers, heights, hover_texts(table, trials))
            figure.add_trace(trace.update(showlegend=row == 1, legendgroup=status), row=row, col=1)
    if done:
        best = best_so_far(values, objective.direction)
        line = go.Scatter(
            x=[trial.number for trial in done],
            y=best,
            mode="lines",
            name="best so far",
            legendgroup="best",
            showlegend=row == 1,
            line={"shape": "hv", "width": 2, "color": VERMILION},
            hovertemplate="best so far: %{y:.5g}<extra></extra>",
        )
        figure.add_trace(line, row=row, col=1)
    _add_marks(figure, table, objective, row)
    axis = value_axis(objective, np.concatenate([values, [one.last or 0.0 for one in stopped]]))
    figure.update_yaxes(axis, row=row, col=1, secondary_y=False)


def _stopped(table: ExperimentTable, objective: Objective) -> list[TrialRecord]:
    """Trials that were stopped early and have a last result; that is one of the first objective."""
    if objective.name != table.objectives[0].name:
        return []
    found = (trial for trial in table.trials if trial.status == "EARLY_STOPPED")
    return [trial for trial in found if trial.last is not None and np.isfinite(trial.last)]


def _add_marks(figure: go.Figure, table: ExperimentTable, objective: Objective, row: int) -> None:
    """Mark those that ended without a finite result along the bottom, on an axis of their own."""
    looks = {"FAILED": "failed", "SUCCEEDED": f"{value_name(objective)} not finite"}
    for status, name in looks.items():
        lost = [one for one in table.trials if one.status == status and _has_no_place(one, objective)]
        if lost:
            numbers = np.array([trial.number for trial in lost])
            trace = points(
                STATUS_LOOKS["FAILED"], numbers, np.full(len(lost), 0.02), hover_texts(table, lost)
            )
            look = {"name": name, "legendgroup": name, "showlegend": row == 1}
            if status == "SUCCEEDED":
                look["marker"] = {"symbol": "star-triangle-up-open"}
            figure.add_trace(trace.update(look), row=row, col=1, secondary_y=True)


def _has_no_place(trial: TrialRecord, objective: Objective) -> bool:
    return trial.status == "FAILED" or trial.value(objective.name) is None
