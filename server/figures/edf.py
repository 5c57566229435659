"""Experiments side by side: which one found good results more often, and which one sooner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .drawing import best_so_far, nothing, panels, ranged, short, value_axis
from .tables import ExperimentTable
from .theme import SERIES, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_edf"]

_TITLE = "Distribution of the results"


def plot_edf(
    tables: ExperimentTable | Sequence[ExperimentTable],
    objective: str | None = None,
    *,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw, for each experiment, which share of its trials is at least as good as each result, and the best so far.

    Only trials with a finite result count. The direction is that of the first experiment. Raise `KeyError` for an
    objective that one of them does not have.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_edf([example_table(seed=1), example_table(seed=2)])
    >>> [trace.name for trace in figure.data if trace.showlegend]
    ['example (47)', 'example (44)']
    """
    given = [tables] if isinstance(tables, ExperimentTable) else list(tables)
    found = [(table, table.finished(table.objective(objective).name)[1]) for table in given]
    found = [(table, values) for table, values in found if values.size]
    if not found:
        return nothing(theme, _TITLE, "No trial has a finite result yet.")
    names = _told_apart([table for table, _ in found])
    first = found[0][0].objective(objective)
    every = np.concatenate([values for _, values in found])
    worst = every.max() if first.direction == "minimize" else every.min()
    figure = panels(theme, _TITLE, 2, 1)
    for number, (_, values) in enumerate(found):
        color, dash = SERIES[number % len(SERIES)]
        ordered = np.sort(values) if first.direction == "minimize" else np.sort(values)[::-1]
        curves = (
            (
                np.concatenate([ordered[:1], ordered, [worst]]),
                np.concatenate([[0.0], np.arange(1, values.size + 1) / values.size, [1.0]]),
                "%{y:.0%} of the trials reach %{x:.5g}",
            ),
            (
                np.arange(1, values.size + 1),
                best_so_far(values, first.direction),
                "best of %{x} trials: %{y:.5g}",
            ),
        )
        for row, (x, y, hover) in enumerate(curves, start=1):
            figure.add_scatter(
                x=x,
                y=y,
                mode="lines",
                name=f"{names[number]} ({values.size:,})",
                legendgroup=str(number),
                showlegend=row == 1,
                line={"shape": "hv", "color": color, "dash": dash, "width": 2},
                hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>",
                row=row,
                col=1,
            )
    axis = ranged(value_axis(first, every), every, 0.02, 0.02)
    share = {"title": {"text": "share of the trials"}, "tickformat": ".0%", "range": [0, 1.02]}
    best = {**axis, "title": {"text": "best so far"}}
    most = max(values.size for _, values in found)
    count = {"title": {"text": "finished trials"}, "tickformat": ",d", "range": [0, 1.02 * most]}
    return figure.update_layout(xaxis=axis, yaxis=share, xaxis2=count, yaxis2=best, height=640)


def _told_apart(tables: Sequence[ExperimentTable]) -> list[str]:
    """Return the names of experiments, with the ids of those that share a name."""
    names = [table.name for table in tables]
    return [
        f"{short(table.name)} {table.experiment_id}".rstrip()
        if names.count(table.name) > 1
        else short(table.name)
        for table in tables
    ]
