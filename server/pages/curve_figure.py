"""The intermediate results of one trial, or of a few side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...store.reading import Curve
from ..figures import SERIES, base_figure, nothing, short

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["curve_figure"]

_MARKERS_UP_TO = 60
_FEW = 10


def curve_figure(curves: Sequence[Curve], names: Mapping[int, str], metric: str) -> go.Figure:
    """Draw curves by the number of the result; `names` maps trials to their labels.

    >>> figure = curve_figure([Curve(7, [0, 1], [0.5, 0.25], 2)], {7: "trial 7"}, "default")
    >>> figure.data[0].name, figure.data[0].y
    ('trial 7', (0.5, 0.25))
    """
    import plotly.graph_objects as go

    drawn = [curve for curve in curves if any(value is not None for value in curve.values)]
    if not drawn:
        return nothing("light", "", "No intermediate result has been reported.").update_layout(height=300)
    longest = max(curve.sequences[-1] for curve in drawn)
    figure = base_figure("light", "")
    for number, curve in enumerate(drawn):
        color, dash = SERIES[number % len(SERIES)]
        trace = go.Scatter(
            x=curve.sequences,
            y=curve.values,
            mode="lines+markers" if len(curve.values) <= _MARKERS_UP_TO else "lines",
            name=short(names.get(curve.sequence_id, str(curve.sequence_id))),
            line={"color": color, "dash": dash, "width": 2},
            marker={"size": 5},
            hovertemplate="result %{x}: <b>%{y:.6g}</b><extra>%{fullData.name}</extra>",
        )
        figure.add_trace(trace)
    figure.update_layout(
        xaxis={"title": {"text": "intermediate result"}, **({"dtick": 1} if longest <= _FEW else {})},
        yaxis={"title": {"text": "result" if metric == "default" else short(metric)}},
        showlegend=len(drawn) > 1,
    )
    return figure.update_layout(height=320, title=None, margin={"t": 30, "r": 10}, uirevision="stays")
