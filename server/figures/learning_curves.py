"""Learning curves: the intermediate results of the trials, with those of early-stopped trials in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure_parts import Hover, base_figure, note, nothing, ranged, value_axis
from .outline import downsampled
from .tables import Curve, ExperimentTable, Objective, TrialRecord, chosen_numbers, left_out
from .theme import BEST, BLUE, GREY, STATUS_LOOKS, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Intermediate results"
_MAX_CURVES = 200
_MAX_POINTS = 20_000
_FEW = 30
_TOP = 10
_TOP_LOOK = Look(f"top {_TOP}", BLUE, "circle")
_REST_LOOK = Look("succeeded", GREY, "circle")
_RAISED = {"legendgroup": "best", "line": {"color": BEST, "dash": "solid", "width": 3}}


def plot_curves(
    table: ExperimentTable,
    *,
    max_curves: int = _MAX_CURVES,
    smoothing: float = 0.0,
    log: bool | None = None,
    show_all: bool = False,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the intermediate results by step: the best trial stands out from the top ten, and these from the others.

    Curves of early-stopped trials are dotted. They are of the table's `curve_metric`; which trials are the best is a
    matter of that metric if it is an objective, else of the first one. At most `max_curves` trials (the best ones and
    others evenly over time) and 20,000 points in all are drawn; a note below the figure says what is left out.
    `smoothing`, at least 0 and less than 1, is the weight of the earlier results in each value. `log` chooses the
    scale, by default what suits the results; `show_all` also shows results that would flatten the others.

    >>> from pitchpipe.server.figures import example_table
    >>> names = [trace.name for trace in plot_curves(example_table()).data if trace.showlegend]
    >>> names
    ['stopped early', 'succeeded', 'failed', 'top 10', 'best: trial 33']
    """
    if not 0.0 <= smoothing < 1.0:
        raise ValueError(f"smoothing has to be at least 0 and less than 1, not {smoothing}")
    records = {trial.number: trial for trial in table.trials}
    curves = [one for one in table.curves if one.number in records and np.isfinite(one.values).any()]
    if not curves:
        return nothing(theme, _TITLE, "No trial has reported an intermediate result.")
    metric = table.metric(table.curve_metric)
    chosen = set(chosen_numbers([records[curve.number] for curve in curves], _goal(table), max_curves))
    shown = [curve for curve in curves if curve.number in chosen]
    figure = base_figure(theme, _TITLE)
    traces = _traces(table, [_smooth(one, smoothing) for one in shown], records)
    figure.add_traces(traces)
    drawn = np.concatenate([np.asarray(trace.y) for trace in traces])
    figure.update_layout(
        xaxis={"title": {"text": "intermediate result"}},
        yaxis=ranged(value_axis(metric, drawn, log=log, show_all=show_all), drawn, 0.05),
        hovermode="closest",
        height=420,
    )
    note(figure, left_out(len(shown), max(table.curve_count, len(curves))))
    return figure


def _goal(table: ExperimentTable) -> Objective:
    """Return the objective that says which trials are the best."""
    metric = table.metric(table.curve_metric)
    return table.objectives[0] if metric.direction is None else metric


def _traces(table: ExperimentTable, curves: list[Curve], records: dict[int, TrialRecord]) -> list[go.Scatter]:
    """Return a trace for each curve, the best one last, so that it lies on top."""
    objective = _goal(table)
    limit = max(_MAX_POINTS // len(curves), 4)
    finished = [curve for curve in curves if records[curve.number].value(objective.name) is not None]
    finished.sort(key=lambda one: objective.sign * (records[one.number].value(objective.name) or 0.0))
    top = {one.number for one in finished[:_TOP]}
    best = next(iter(finished), None)
    # Grey ones first: they must not cover the others.
    order = sorted(
        curves,
        key=lambda one: (one is best, one.number in top, records[one.number].status != "EARLY_STOPPED"),
    )
    texts = _texts(table, [records[curve.number] for curve in order])
    named: set[str] = set()
    traces = []
    for curve, text in zip(order, texts, strict=True):
        look = _look(records[curve.number], is_top=curve.number in top)
        trace = _trace(curve, look, text, limit)
        if curve is best:
            trace.update(_RAISED, name=f"best: trial {curve.number}")
        else:
            trace.update(opacity=1.0 if look is _TOP_LOOK else 0.9 if len(curves) <= _FEW else 0.45)
        group = "best" if curve is best else look.name
        traces.append(trace.update(showlegend=group not in named))
        named.add(group)
    return traces


def _texts(table: ExperimentTable, trials: list[TrialRecord]) -> list[str]:
    """Return the hover text of each curve's trial; only the number if there are very many."""
    texts = Hover.of(table, trials).texts
    return [f"<b>trial {one.number}</b>" for one in trials] if texts is None else list(texts)


def _smooth(curve: Curve, share: float) -> Curve:
    """Return the exponentially smoothed curve; gaps stay.

    >>> _smooth(Curve(0, [0.0, 1.0, 2.0], [0.0, 1.0, 1.0]), 0.5).values.round(3).tolist()
    [0.0, 0.667, 0.857]
    """
    if not share:
        return curve
    values = np.asarray(curve.values, dtype=np.float64)
    smooth, mean, weight = np.full(values.shape, np.nan), 0.0, 0.0
    for place, value in enumerate(values):
        if np.isfinite(value):
            mean, weight = share * mean + (1.0 - share) * value, share * weight + (1.0 - share)
            smooth[place] = mean / weight  # without it the first values would be drawn towards 0
    return Curve(curve.number, curve.steps, smooth)


def _look(record: TrialRecord, *, is_top: bool) -> Look:
    if is_top:
        return _TOP_LOOK
    return _REST_LOOK if record.status == "SUCCEEDED" else STATUS_LOOKS[record.status]


def _trace(curve: Curve, look: Look, text: str, limit: int) -> go.Scatter:
    import plotly.graph_objects as go

    steps, values = downsampled(curve.steps, curve.values, limit)
    return go.Scatter(
        x=steps + 1,  # the first result is 1, as in the reasons of early stopping
        y=values,
        mode="lines" if values.size > 1 else "markers",
        marker={"color": look.color, "size": 5},
        name=look.name,
        legendgroup=look.name,
        meta=curve.number,
        line={"color": look.color, "dash": look.dash, "width": 1.8 if look is _TOP_LOOK else 1.2},
        text=text,
        hovertemplate="%{text}<br>result %{x}: <b>%{y:.6~g}</b><extra></extra>",
    )
