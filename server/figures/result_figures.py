"""Figures of the results themselves: their history, their distribution, and the Pareto front of several objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...numerics import front_of, knee_of
from .dimensions import Numbers
from .figure_parts import Hover, note, nothing, panels, points, ranged, short, value_axis, write
from .outline import best_so_far, corners
from .shown import Shown, shown_of
from .tables import ExperimentTable, Objective
from .theme import BEST, GREY, PURPLE, SERIES, STATUS_LOOKS, VERMILION, VIOLATES, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_HISTORY, _EDF, _PARETO = "History", "Distribution of the results", "Pareto front"
_ENDS_WITHOUT_RESULT: Mapping[str, Look] = {
    "EARLY_STOPPED": STATUS_LOOKS["EARLY_STOPPED"],
    "FAILED": STATUS_LOOKS["FAILED"],
    "SUCCEEDED": Look("no finite result", VERMILION, "triangle-up-open"),
}
_MOST_PAIRS = 6
_PARETO_COLUMNS = 3  # each panel has a title of its own, which needs room
_FRONT, _KNEE = "on the front", "knee"
_PARETO_MARKERS = {
    VIOLATES.name: {"color": VIOLATES.color, "size": 6, "symbol": VIOLATES.symbol},
    "dominated": {"color": GREY, "size": 6},
    _FRONT: {"color": BEST, "size": 10, "symbol": "diamond", "opacity": 1.0},
    _KNEE: {"color": BEST, "size": 15, "symbol": "star", "opacity": 1.0},
}


def plot_history(
    table: ExperimentTable,
    objective: str | None = None,
    *,
    stopped: bool = True,
    log: bool | None = None,
    show_all: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the result of each trial by its number, and the best so far; without `objective` one panel each.

    `objective` may be any metric that trials report. Early-stopped trials are open circles at their last result, those
    that violate a limit are crosses. Trials that failed or ended without a finite result are marks along the bottom,
    and so are, without `stopped`, early-stopped ones. A line stands before the first trial of other code. `log` chooses
    the scale of the results, by default what suits them; `show_all` also shows those that would flatten the others.
    Raises `KeyError` for an unknown metric.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.name for trace in plot_history(example_table(), "loss").data]
    ['succeeded', 'stopped early', 'best so far', 'failed']
    """
    chosen = table.objectives if objective is None else (table.metric(objective),)
    every = [shown_of(table, each, stopped=stopped) for each in chosen]
    has_ended = any(trial.status in _ENDS_WITHOUT_RESULT for trial in table.trials)
    if not has_ended and not any(shown.trials for shown in every):
        return nothing(theme, _HISTORY, "No trial has ended yet." if table.step is None else every[0].nothing)
    figure = panels(theme, _HISTORY, len(chosen), 1, shared_x=True, marks=True)
    named: set[str] = set()
    for row, (each, shown) in enumerate(zip(chosen, every, strict=True), start=1):
        marks = _marks(table, shown)
        traces = [(trace, False) for trace in _results(table, each, shown)]
        traces += [(mark, True) for mark in (*marks, *_code_changes(table))]
        for trace, is_mark in traces:
            trace.update(legendgroup=trace.name, showlegend=trace.name not in named)
            named.add(trace.name)
            figure.add_trace(trace, row=row, col=1, secondary_y=is_mark)
        axis = value_axis(each, shown.every, log=log, show_all=show_all)
        axis = ranged(axis, shown.every, 0.16 if marks else 0.05)
        figure.update_yaxes(axis, row=row, col=1, secondary_y=False)
    if not any(shown.trials for shown in every):
        write(figure, "No trial has a finite result." if table.step is None else every[0].nothing, 0.5, 0.5)
    notes = dict.fromkeys(line for shown in every for line in shown.notes[1:])
    note(figure, table.left_out, *notes)
    figure.update_xaxes(title_text="trial", tickformat=",d", row=len(chosen), col=1)
    return figure.update_layout(height=420 if len(chosen) == 1 else 120 + 240 * len(chosen))


def _results(table: ExperimentTable, goal: Objective, shown: Shown) -> list[Any]:
    """Draw the results as points, each kind of trial in its look, and the best so far as a line."""
    import plotly.graph_objects as go

    hover = Hover.of(table, shown.trials)
    traces = [
        points(look, shown.numbers[mask], shown.values[mask], hover.at(mask))
        for look, mask in shown.groups.items()
    ]
    numbers, best = _best_line(table, goal, shown)
    if not len(numbers):
        return traces
    x, y = corners(numbers, best)
    line = go.Scatter(
        x=x,
        y=y,
        mode="lines",
        name="best so far",
        line={"shape": "hv", "width": 2.5, "color": BEST},
        hovertemplate="best so far: %{y:.6~g}<extra></extra>",
    )
    return [*traces, line]


def _best_line(table: ExperimentTable, goal: Objective, shown: Shown) -> tuple[NDArray[np.int64], Numbers]:
    """Return the numbers of the trials that may be the best, and the best up to each; none without a direction."""
    if goal.direction is None:
        return np.empty(0, dtype=np.int64), np.empty(0)
    if table.step is None:
        return table.outcomes.best_line(goal, table.limits)
    keeps = np.array([look is not VIOLATES for look in shown.looks], dtype=bool)
    return shown.numbers[keeps], best_so_far(shown.values[keeps], goal.direction)


def _marks(table: ExperimentTable, shown: Shown) -> list[Any]:
    """Mark the trials that ended without a result along the bottom, each kind of end at its own height."""
    placed = {trial.number for trial in shown.trials}
    ended = [one for one in table.configurations if table.step is None and one.number not in placed]
    marks = []
    for height, (status, look) in enumerate(_ENDS_WITHOUT_RESULT.items()):
        lost = [one for one in ended if one.status == status]
        if lost:
            heights = np.full(len(lost), 0.02 + 0.03 * height)
            marks.append(points(look, [trial.number for trial in lost], heights, Hover.of(table, lost).at()))
    return marks


def _code_changes(table: ExperimentTable) -> list[Any]:
    """Draw a line across the panel before each trial that was the first with other code."""
    import plotly.graph_objects as go

    if not table.code_changes:
        return []
    texts = [f"code changed: {short(text, 80)}" for text in table.code_changes.values()]
    line = go.Scatter(
        x=[place for number in table.code_changes for place in (number - 0.5, number - 0.5, None)],
        y=[0, 1, None] * len(texts),
        text=[text for each in texts for text in (each, each, None)],
        mode="lines",
        name="code changed",
        line={"width": 1, "color": PURPLE, "dash": "dash"},
        hovertemplate="%{text}<extra></extra>",
    )
    return [line]


# ---------------------------------------------------------------------- distribution


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
    named = list(zip(_unique_names(given), given, strict=True))
    is_alike = [
        any((each.name, each.direction) == (first.name, first.direction) for each in table.objectives)
        for table in given
    ]
    outcomes = [(name, table.outcomes) for name, table in compress(named, is_alike)]
    results = [(name, one, one.results(first.name)) for name, one in outcomes]
    results = [(name, one, values) for name, one, values in results if values.size]
    if not results:
        return nothing(theme, _EDF, "No trial has a finite result yet.")
    every = np.concatenate([values for _, _, values in results])
    worst = every.max() if first.direction == "minimize" else every.min()
    figure = panels(theme, _EDF, 2, 1)
    for number, (name, one, values) in enumerate(results):
        ended = one.ended()
        counts = np.union1d(ended[one.finished(first.name)], ended[-1:])
        _add_experiment(figure, number, name, values, counts, worst, first.direction)
    axis = ranged(value_axis(first, every), every, 0.02, 0.02)
    share = {"title": {"text": "share of the trials"}, "tickformat": ".0%", "range": [0, 1.02]}
    best = {**axis, "title": {"text": "best so far"}}
    most = max(int(one.ended()[-1]) for _, one, _ in results)
    count = {"title": {"text": "finished trials"}, "tickformat": ",d", "range": [0, 1.02 * most]}
    figure.update_layout(xaxis=axis, yaxis=share, xaxis2=count, yaxis2=best, height=640)
    if others := [name for (name, _), alike in zip(named, is_alike, strict=True) if not alike]:
        note(figure, f"left out, since not to {first.direction} {first.name}: {', '.join(others)}")
    return figure


def _add_experiment(
    figure: go.Figure,
    number: int,
    name: str,
    values: Numbers,
    counts: NDArray[np.int64],
    worst: float,
    direction: str | None,
) -> None:
    """Draw an experiment: the share of its trials above, the best so far below.

    `counts` are how many trials had ended at each of the values, and how many have in all.
    """
    color, dash = SERIES[number % len(SERIES)]
    ordered = np.sort(values) if direction == "minimize" else np.sort(values)[::-1]
    results = np.concatenate([ordered[:1], ordered, [worst]])
    shares = np.concatenate([[0.0], np.arange(1, values.size + 1) / values.size, [1.0]])
    best = best_so_far(values, direction)
    curves = (
        (results, shares, "%{y:.0%} of the trials reach %{x:.6~g}"),
        (counts, np.append(best, best[-1:])[: counts.size], "best of %{x} trials: %{y:.6~g}"),
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


def _unique_names(tables: Sequence[ExperimentTable]) -> list[str]:
    """Return the names of experiments, with the ids of those that share a name."""
    names = [table.name for table in tables]
    return [
        f"{short(table.name)} {table.experiment_id}".rstrip()
        if names.count(table.name) > 1
        else short(table.name)
        for table in tables
    ]


# ---------------------------------------------------------------------- Pareto front


def plot_pareto(
    table: ExperimentTable,
    objectives: Sequence[str] | None = None,
    *,
    show_all: bool = False,
    columns: int = _PARETO_COLUMNS,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the trials by two objectives, those on the front marked; each pair of more objectives has a panel.

    The panels are in rows of at most `columns`, and at most three. The front is that of the chosen `objectives`, of all
    by default; its knee is a star. Trials that violate a limit are not on it. Results that would flatten the others are
    outside the axes, unless they are on the front or `show_all` is set. Raises `KeyError` for an unknown objective.

    >>> from pitchpipe.server.figures import example_table
    >>> [trace.name for trace in plot_pareto(example_table()).data]
    ['dominated', 'on the front', 'knee']
    """
    chosen = table.objectives if objectives is None else tuple(map(table.objective, objectives))
    if len(chosen) < 2:
        return nothing(theme, _PARETO, "A Pareto front needs two objectives.")
    results = [(trial, [trial.value(one.name) for one in chosen]) for trial in table.configurations]
    complete = [(trial, values) for trial, values in results if None not in values]
    if not complete:
        return nothing(theme, _PARETO, "No trial has a finite result in every objective yet.")
    trials = [trial for trial, _ in complete]
    values = np.array([values for _, values in complete], dtype=np.float64)
    feasible = np.array([table.keeps_limits(trial) for trial in trials])
    groups = _groups(values * np.array([one.sign for one in chosen]), feasible)
    pairs = list(combinations(range(len(chosen)), 2))[:_MOST_PAIRS]
    columns = min(len(pairs), columns, _PARETO_COLUMNS)
    rows = -(-len(pairs) // columns)
    figure = panels(theme, _PARETO, rows, columns)
    hover = Hover.of(table, trials, len(pairs))
    for place, pair in enumerate(pairs):
        at = (place // columns + 1, place % columns + 1)
        _add_pair(
            figure, [chosen[one] for one in pair], values[:, pair], groups, hover, at, show_all=show_all
        )
    note(figure, table.left_out, _unplaced(table, chosen))
    return figure.update_layout(height=440 if rows == 1 else 120 + 340 * rows)


def _unplaced(table: ExperimentTable, objectives: Sequence[Objective]) -> str:
    """Return how many trials succeeded with an infinite result: they have no place, even if they are on the front."""
    outcomes = table.outcomes
    has_place = np.all([np.isfinite(outcomes.values[one.name]) for one in objectives], axis=0)
    count = int(((outcomes.statuses == "SUCCEEDED") & ~has_place).sum())
    return f"{count:,} with an infinite result {'is' if count == 1 else 'are'} not shown" if count else ""


def _add_pair(
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
    for name, group in groups.items():
        if not group.any():
            continue
        order = np.flatnonzero(group)[np.argsort(values[group, 0], kind="stable")]
        trace = points(STATUS_LOOKS["SUCCEEDED"], values[order, 0], values[order, 1], hover.at(order))
        trace.update(name=name, legendgroup=name, showlegend=at == (1, 1), marker=_PARETO_MARKERS[name])
        figure.add_trace(trace, row=row, col=col)
    on_front = groups[_FRONT] | groups[_KNEE]
    x, y = (
        ranged(value_axis(objective, results, results[on_front].tolist(), show_all=show_all), results, 0.05)
        for objective, results in zip(pair, values.T, strict=True)
    )
    figure.update_xaxes(x, row=row, col=col)
    figure.update_yaxes(y, row=row, col=col)


def _groups(losses: Numbers, feasible: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Return which trials are of each kind, masks of shape (n,), in the order in which they are drawn."""
    front = front_of({place: tuple(losses[place].tolist()) for place in np.flatnonzero(feasible).tolist()})
    places = np.arange(len(losses))
    on_front, is_knee = np.isin(places, list(front)), places == knee_of(front)
    return {
        VIOLATES.name: ~feasible,
        "dominated": feasible & ~on_front,
        _FRONT: on_front & ~is_knee,
        _KNEE: is_knee,
    }
