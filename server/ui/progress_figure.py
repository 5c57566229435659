"""The figure of the overview: every result by time, and the best so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from ..figures import (
    BEST,
    STATUS_LOOKS,
    Objective,
    base_figure,
    downsampled,
    drawable,
    nothing,
    number_or_none,
    ranged,
    value_axis,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["BY", "By", "progress_figure"]

By = Literal["time", "trials"]
# Along the axis: the moment at which a trial ended, or how many had ended.
BY: Mapping[By, str] = MappingProxyType({"time": "by time", "trials": "by trials"})

# Up to this many results are drawn one by one; of more, the extremes of each interval.
_MOST_POINTS = 600


def progress_figure(
    history: Sequence[dict[str, Any]],
    objective: Objective,
    front: Mapping[str, Any] | None = None,
    by: By = "time",
) -> go.Figure:
    """Draw results by time or number, and the best so far; `history` is that of `ExperimentView.history`.

    With several objectives `front` is that of `ExperimentView.front`: its trials are always drawn, however bad they are
    by this objective, and its hypervolume takes the place of the best so far.

    >>> history = [{"sequence_id": n, "time": 1e9 + n, "value": float(n % 3), "best": 0.0} for n in range(9)]
    >>> [len(trace.x) for trace in progress_figure(history, Objective()).data]
    [9, 2]
    """
    import plotly.graph_objects as go

    known = [
        {**row, "place": _place(row["time"], count, by)}
        for count, row in enumerate(history, start=1)
        if row["time"] is not None and number_or_none(row["value"]) is not None
    ]
    if not known:
        return nothing("light", "", "No trial has succeeded yet.").update_layout(height=300)
    values = drawable([row["value"] for row in known])
    places, _ = downsampled(range(len(known)), values, _MOST_POINTS)
    numbers = frozenset(front["trials"] if front else ())
    on_front = [place for place, row in enumerate(known) if row["sequence_id"] in numbers]
    places = sorted({*map(int, places), *on_front})
    shown = [known[place] for place in places]
    look = STATUS_LOOKS["SUCCEEDED"]
    points = go.Scatter(
        x=[row["place"] for row in shown],
        y=values[places],
        mode="markers",
        name="results",
        marker={"color": look.color, "size": 6, "opacity": 0.6},
        customdata=[row["sequence_id"] for row in shown],
        hovertemplate="trial %{customdata}: %{y:.6g}<extra></extra>",
    )
    line = _best_line(known) if front is None else _volume_line(front["history"], known)
    figure = base_figure("light", "").add_traces([points, *line])
    figure.update_yaxes(ranged(value_axis(objective, values, values[on_front].tolist()), values, 0.05))
    figure.update_xaxes(title_text="finished trials" if by == "trials" else None, nticks=6)
    if front is not None:
        figure.update_layout(yaxis2={"title": {"text": "hypervolume"}, "overlaying": "y", "side": "right"})
    return figure.update_layout(height=300, title=None, margin={"t": 30, "r": 10}, uirevision="stays")


def _best_line(known: Sequence[dict[str, Any]]) -> list[go.Scatter]:
    """Return the best so far as steps: a corner where it changed, and the end."""
    rows = [row for row in known if number_or_none(row["best"]) is not None]
    if not rows:
        return []
    corners = [row for before, row in pairwise(rows) if row["best"] != before["best"]]
    shown = [rows[0], *corners, *([rows[-1]] if [rows[0], *corners][-1] is not rows[-1] else [])]
    return [_steps(shown, "best", "best so far")]


def _volume_line(history: Sequence[dict[str, Any]], known: Sequence[dict[str, Any]]) -> list[go.Scatter]:
    places = {row["sequence_id"]: row["place"] for row in known}
    rows = [{**row, "place": places[row["sequence_id"]]} for row in history if row["sequence_id"] in places]
    return [_steps(rows, "hypervolume", "hypervolume").update(yaxis="y2")] if rows else []


def _steps(rows: Sequence[dict[str, Any]], field: str, name: str) -> go.Scatter:
    import plotly.graph_objects as go

    return go.Scatter(
        x=[row["place"] for row in rows],
        y=[row[field] for row in rows],
        mode="lines",
        name=name,
        line={"shape": "hv", "width": 2, "color": BEST},
        customdata=[row["sequence_id"] for row in rows],
        hovertemplate=f"{name}: %{{y:.6g}}<extra></extra>",
    )


def _place(time: float, count: int, by: By) -> datetime | int:
    """Return the place of a trial along the axis: local time has no zone, because plotly shows it unchanged."""
    return count if by == "trials" else datetime.fromtimestamp(time)
