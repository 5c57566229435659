"""Learning curves: the intermediate results of the trials, those stopped early greyed."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from .downsampling import chosen_numbers, downsampled
from .drawing import base_figure, note, nothing, ranged, value_axis
from .hovering import Hover
from .tables import Curve, ExperimentTable, TrialRecord
from .theme import BEST, STATUS_LOOKS, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["plot_curves"]

_TITLE = "Intermediate results"
_MAX_CURVES = 200
_MAX_POINTS = 20_000
_FEW = 30
_RAISED = MappingProxyType({"legendgroup": "best", "line": {"color": BEST, "dash": "solid", "width": 3}})


def plot_curves(
    table: ExperimentTable, *, max_curves: int = _MAX_CURVES, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the intermediate results by step; the best trial stands out, those stopped early are grey and dotted.

    At most `max_curves` trials (the best ones and others evenly over time) and 20,000 points in all are drawn, however
    many there are; a note below the figure says what is left out. The results are those of the first objective.

    >>> from pitchpipe.server.figures import example_table
    >>> names = [trace.name for trace in plot_curves(example_table()).data if trace.showlegend]
    >>> names
    ['stopped early', 'succeeded', 'failed', 'best: trial 33']
    """
    records = {trial.number: trial for trial in table.trials}
    curves = [one for one in table.curves if one.number in records and np.isfinite(one.values).any()]
    if not curves:
        return nothing(theme, _TITLE, "No trial has reported an intermediate result.")
    objective = table.objectives[0]
    chosen = set(chosen_numbers([records[curve.number] for curve in curves], objective, max_curves))
    shown = [curve for curve in curves if curve.number in chosen]
    figure = base_figure(theme, _TITLE)
    traces = _traces(table, shown, records)
    figure.add_traces(traces)
    drawn = np.concatenate([np.asarray(trace.y) for trace in traces])
    figure.update_layout(
        xaxis={"title": {"text": "intermediate result"}},
        yaxis=ranged(value_axis(objective, drawn), drawn, 0.05),
        hovermode="closest",
        height=420,
    )
    if (count := max(table.curve_count, len(curves))) > len(shown):
        note(figure, f"{len(shown):,} of {count:,} trials are shown")
    return figure


def _traces(table: ExperimentTable, curves: list[Curve], records: dict[int, TrialRecord]) -> list[go.Scatter]:
    """Return a trace for each curve, the best one last, so that it lies on top."""
    objective = table.objectives[0]
    sign = 1.0 if objective.direction == "minimize" else -1.0
    limit = max(_MAX_POINTS // len(curves), 4)
    finished = [curve for curve in curves if records[curve.number].value(objective.name) is not None]
    best = min(
        finished, key=lambda one: sign * (records[one.number].value(objective.name) or 0.0), default=None
    )
    # Grey ones first: stopped trials must not cover the others.
    order = sorted(curves, key=lambda one: (one is best, records[one.number].status != "EARLY_STOPPED"))
    texts = _texts(table, [records[curve.number] for curve in order])
    named: set[str] = set()
    traces = []
    for curve, text in zip(order, texts, strict=True):
        record = records[curve.number]
        trace = _trace(curve, record, text, limit)
        trace.update(_RAISED if curve is best else {"opacity": 0.9 if len(curves) <= _FEW else 0.7})
        if curve is best:
            trace.update(name=f"best: trial {record.number}")
        traces.append(trace.update(showlegend=curve is best or record.status not in named))
        named.add(record.status)
    return traces


def _texts(table: ExperimentTable, trials: list[TrialRecord]) -> list[str]:
    """Return the hover text of each curve's trial; only the number if there are very many."""
    texts = Hover.of(table, trials).texts
    return [f"<b>trial {one.number}</b>" for one in trials] if texts is None else list(texts)


def _trace(curve: Curve, record: TrialRecord, text: str, limit: int) -> go.Scatter:
    import plotly.graph_objects as go

    look = STATUS_LOOKS[record.status]
    steps, values = downsampled(curve.steps, curve.values, limit)
    return go.Scatter(
        x=steps,
        y=values,
        mode="lines" if values.size > 1 else "markers",
        marker={"color": look.color, "size": 5},
        name=look.name,
        legendgroup=record.status,
        line={"color": look.color, "dash": look.dash, "width": 1.2},
        text=text,
        hovertemplate="%{text}<br>result %{x}: <b>%{y:.5g}</b><extra></extra>",
    )
