"""The figure of the overview: every result by time, and the best so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from ..figures import (
    BEST,
    STATUS_LOOKS,
    Objective,
    ThemeName,
    base_figure,
    best_so_far,
    downsampled,
    nothing,
    number_or_none,
    value_axis,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["progress_figure"]

# Up to this many results are drawn one by one; of more, the extremes of each interval.
_MOST_POINTS = 600


def progress_figure(
    history: Sequence[dict[str, Any]],
    objective: Objective,
    theme: ThemeName = "light",
    front: Collection[int] = (),
) -> go.Figure:
    """Draw results by time, and the best so far; `history` is that of `ExperimentView.history`.

    The trials whose numbers are in `front` are always drawn, however bad they are by this objective.

    >>> history = [{"sequence_id": n, "time": 1e9 + n, "value": float(n % 3), "best": 0.0} for n in range(9)]
    >>> [len(trace.x) for trace in progress_figure(history, Objective()).data]
    [9, 2]
    """
    import plotly.graph_objects as go

    known = [row for row in history if row["time"] is not None and number_or_none(row["value"]) is not None]
    if not known:
        return nothing(theme, "", "No trial has succeeded yet.").update_layout(height=300)
    values = np.array([row["value"] for row in known])
    places, _ = downsampled(range(len(known)), values, _MOST_POINTS)
    on_front = [place for place, row in enumerate(known) if row["sequence_id"] in front]
    places = sorted({*map(int, places), *on_front})
    shown = [known[place] for place in places]
    look = STATUS_LOOKS["SUCCEEDED"]
    points = go.Scatter(
        x=[_moment(row["time"]) for row in shown],
        y=values[places],
        mode="markers",
        name="results",
        marker={"color": look.color, "size": 6, "opacity": 0.6},
        customdata=[row["sequence_id"] for row in shown],
        hovertemplate="trial %{customdata}: %{y:.6g}<extra></extra>",
    )
    figure = base_figure(theme, "").add_traces([points, _best_line(known, values, objective)])
    figure.update_yaxes(value_axis(objective, values, values[on_front].tolist()))
    return figure.update_layout(height=300, title=None, margin={"t": 30, "r": 10}, uirevision="stays")


def _best_line(known: Sequence[dict[str, Any]], values: np.ndarray, objective: Objective) -> go.Scatter:
    """Return the best so far as steps: a corner where it changed, and the end."""
    import plotly.graph_objects as go

    best = best_so_far(values, objective.direction)
    corners = [0, *(np.flatnonzero(np.diff(best)) + 1).tolist()]
    if corners[-1] != len(known) - 1:
        corners.append(len(known) - 1)
    return go.Scatter(
        x=[_moment(known[corner]["time"]) for corner in corners],
        y=best[corners],
        mode="lines",
        name="best so far",
        line={"shape": "hv", "width": 2, "color": BEST},
        customdata=[known[corner]["sequence_id"] for corner in corners],
        hovertemplate="best so far: %{y:.6g}<extra></extra>",
    )


def _moment(seconds: float) -> datetime:
    """Return the local time without a zone: plotly shows it unchanged."""
    return datetime.fromtimestamp(seconds)
