"""Experiments side by side: which one found good results more often, and which one sooner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from .drawing import Numbers, best_so_far, corners, note, nothing, panels, ranged, short, value_axis
from .tables import ExperimentTable
from .theme import SERIES, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Distribution of the results"


def plot_edf(
    tables: ExperimentTable | Sequence[ExperimentTable],
    objective: str | None = None,
    *,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw, for each experiment, which share of its trials is at least as good as each result, and the best so far.

    Only trials with a finite result count. Experiments without the objective of the first one, or with another
    direction for it, are left out, and a line below the figure names them. Raise `KeyError` for an objective that the
    first one does not have.

    >>> from pitchpipe.server.figures import example_table
    >>> figure = plot_edf([example_table(seed=1), example_table(seed=2)])
    >>> [trace.name for trace in figure.data if trace.showlegend]
    ['example (47)', 'example (44)']
    """
    given = [tables] if isinstance(tables, ExperimentTable) else list(tables)
    first = given[0].objective(objective)
    named = list(zip(_told_apart(given), given, strict=True))
    is_alike = [(first.name, first.direction) in _goals(table) for table in given]
    found = [(name, table.outcomes.results(first.name)) for name, table in compress(named, is_alike)]
    found = [(name, values) for name, values in found if values.size]
    if not found:
        return nothing(theme, _TITLE, "No trial has a finite result yet.")
    every = np.concatenate([values for _, values in found])
    worst = every.max() if first.direction == "minimize" else every.min()
    figure = panels(theme, _TITLE, 2, 1)
    for number, (name, values) in enumerate(found):
        _add_curves(figure, number, name, values, worst, first.direction)
    axis = ranged(value_axis(first, every), every, 0.02, 0.02)
    share = {"title": {"text": "share of the trials"}, "tickformat": ".0%", "range": [0, 1.02]}
    best = {**axis, "title": {"text": "best so far"}}
    most = max(values.size for _, values in found)
    count = {"title": {"text": "finished trials"}, "tickformat": ",d", "range": [0, 1.02 * most]}
    figure.update_layout(xaxis=axis, yaxis=share, xaxis2=count, yaxis2=best, height=640)
    if others := [name for (name, _), alike in zip(named, is_alike, strict=True) if not alike]:
        note(figure, f"left out, since not to {first.direction} {first.name}: {', '.join(others)}")
    return figure


def _add_curves(
    figure: go.Figure, number: int, name: str, values: Numbers, worst: float, direction: str | None
) -> None:
    """Draw an experiment: the share of its trials above, the best so far below."""
    color, dash = SERIES[number % len(SERIES)]
    ordered = np.sort(values) if direction == "minimize" else np.sort(values)[::-1]
    curves = (
        (
            np.concatenate([ordered[:1], ordered, [worst]]),
            np.concatenate([[0.0], np.arange(1, values.size + 1) / values.size, [1.0]]),
            "%{y:.0%} of the trials reach %{x:.5g}",
        ),
        (
            np.arange(1, values.size + 1),
            best_so_far(values, direction),
            "best of %{x} trials: %{y:.5g}",
        ),
    )
    for row, (x, y, hover) in enumerate(curves, start=1):
        x, y = corners(x, y)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=f"{name} ({values.size:,})",
            legendgroup=str(number),
            showlegend=row == 1,
            line={"shape": "hv", "color": color, "dash": dash, "width": 2},
            hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>",
            row=row,
            col=1,
        )


def _goals(table: ExperimentTable) -> set[tuple[str, str | None]]:
    return {(one.name, one.direction) for one in table.objectives}


def _told_apart(tables: Sequence[ExperimentTable]) -> list[str]:
    """Return the names of experiments, with the ids of those that share a name."""
    names = [table.name for table in tables]
    return [
        f"{short(table.name)} {table.experiment_id}".rstrip()
        if names.count(table.name) > 1
        else short(table.name)
        for table in tables
    ]
