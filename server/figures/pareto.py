"""The Pareto front: the trials that no other trial dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...numerics import front_of, knee_of
from .drawing import note, nothing, panels, points, ranged, value_axis
from .hovering import Hover
from .tables import ExperimentTable, Objective
from .theme import BEST, STATUS_LOOKS, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Pareto front"
_MOST_PAIRS = 6
_COLUMNS = 3
_FRONT, _KNEE = "on the front", "knee"
_GREY = "#7d838b"
_MARKERS = MappingProxyType(
    {
        "violates a limit": {"color": _GREY, "size": 6, "symbol": "x-thin-open"},
        "dominated": {"color": _GREY, "size": 6},
        _FRONT: {"color": BEST, "size": 10, "symbol": "diamond", "opacity": 1.0},
        _KNEE: {"color": BEST, "size": 15, "symbol": "star", "opacity": 1.0},
    }
)

Numbers = NDArray[np.float64]


def plot_pareto(
    table: ExperimentTable,
    objectives: Sequence[str] | None = None,
    *,
    show_all: bool = False,
    columns: int = _COLUMNS,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the trials by two objectives, those on the front marked; more than two objectives have a panel each pair.

    The panels are in rows of at most `columns`, three at most: each has an axis title of its own, which needs room.

    The front is that of the chosen `objectives`, all without; its knee is a star. Trials that violate a limit are not
    on it. Results that would flatten the others are outside the axes, unless on the front or with `show_all`. Raises
    `KeyError` for an unknown objective.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.name for trace in plot_pareto(example_table()).data]
    ['dominated', 'on the front', 'knee']
    """
    chosen = table.objectives if objectives is None else tuple(map(table.objective, objectives))
    if len(chosen) < 2:
        return nothing(theme, _TITLE, "A Pareto front needs two objectives.")
    results = [(trial, [trial.value(one.name) for one in chosen]) for trial in table.configurations]
    usable = [(trial, values) for trial, values in results if None not in values]
    if not usable:
        return nothing(theme, _TITLE, "No trial has a finite result in every objective yet.")
    trials = [trial for trial, _ in usable]
    values = np.array([values for _, values in usable], dtype=np.float64)
    signs = np.array([1.0 if one.direction == "minimize" else -1.0 for one in chosen])
    feasible = np.array([table.keeps_limits(trial) for trial in trials])
    groups = _groups(values * signs, feasible)
    pairs = list(combinations(range(len(chosen)), 2))[:_MOST_PAIRS]
    columns = min(len(pairs), columns, _COLUMNS)
    rows = -(-len(pairs) // columns)
    figure = panels(theme, _TITLE, rows, columns)
    hover = Hover.of(table, trials, len(pairs))
    for place, pair in enumerate(pairs):
        at = (place // columns + 1, place % columns + 1)
        _add_panel(
            figure, [chosen[one] for one in pair], values[:, pair], groups, hover, at, show_all=show_all
        )
    if notes := [*filter(None, (table.left_out, _unplaced(table, chosen)))]:
        note(figure, "\n".join(notes))
    return figure.update_layout(height=440 if rows == 1 else 120 + 340 * rows)


def _unplaced(table: ExperimentTable, objectives: Sequence[Objective]) -> str:
    """Return how many trials succeeded with a result that has no place, though they may be on the front."""
    found = table.outcomes
    has_place = np.all([np.isfinite(found.values[one.name]) for one in objectives], axis=0)
    count = int(((found.statuses == "SUCCEEDED") & ~has_place).sum())
    return f"{count:,} with an infinite result {'is' if count == 1 else 'are'} not shown" if count else ""


def _add_panel(
    figure: go.Figure,
    pair: Sequence[Objective],
    values: Numbers,
    groups: Mapping[str, NDArray[np.bool_]],
    hover: Hover,
    at: tuple[int, int],
    *,
    show_all: bool,
) -> None:
    row, col = at
    front = groups[_FRONT] | groups[_KNEE]
    for name, group in groups.items():
        if not group.any():
            continue
        order = np.flatnonzero(group)[np.argsort(values[group, 0], kind="stable")]
        trace = points(STATUS_LOOKS["SUCCEEDED"], values[order, 0], values[order, 1], hover.at(order))
        trace.update(name=name, legendgroup=name, showlegend=at == (1, 1))
        trace.update(marker=_MARKERS[name])
        figure.add_trace(trace, row=row, col=col)
    figure.update_xaxes(_axis(pair[0], values[:, 0], front, show_all), row=row, col=col)
    figure.update_yaxes(_axis(pair[1], values[:, 1], front, show_all), row=row, col=col)


def _axis(objective: Objective, values: Numbers, front: NDArray[np.bool_], show_all: bool) -> dict[str, Any]:
    return ranged(value_axis(objective, values, values[front].tolist(), show_all=show_all), values, 0.05)


def _groups(losses: Numbers, feasible: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return the trials of each kind, all of shape (n,), those drawn last at the end."""
    points_on_front = front_of(
        {place: tuple(losses[place].tolist()) for place in np.flatnonzero(feasible).tolist()}
    )
    places = np.arange(len(losses))
    front, knee = np.isin(places, list(points_on_front)), places == knee_of(points_on_front)
    return {
        "violates a limit": ~feasible,
        "dominated": feasible & ~front,
        _FRONT: front & ~knee,
        _KNEE: knee,
    }
