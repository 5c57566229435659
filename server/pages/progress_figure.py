"""The figure of the overview: every result by time, and the best so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ...store.reading import HistoryEntry, ParetoFront, VolumeEntry
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


@dataclass(frozen=True, slots=True)
class _Point:
    """A result at its place along the axis, with the number of its trial, and the best result until then."""

    place: datetime | int
    number: int
    value: float
    best: float | None


def progress_figure(
    history: Sequence[HistoryEntry],
    objective: Objective,
    front: ParetoFront | None = None,
    by: By = "time",
) -> go.Figure:
    """Draw results by time or number, and the best so far; `history` is that of `ExperimentView.history`.

    With several objectives `front` is that of `ExperimentView.front`: its trials are always drawn, however bad they are
    by this objective, and its hypervolume takes the place of the best so far.

    >>> history = [HistoryEntry(number, 1e9 + number, float(number % 3), 0.0) for number in range(9)]
    >>> [len(trace.x) for trace in progress_figure(history, Objective()).data]
    [9, 2]
    """
    import plotly.graph_objects as go

    known = [
        _Point(_place(entry.time, count, by), entry.sequence_id, entry.value, entry.best)
        for count, entry in enumerate(history, start=1)
        if entry.time is not None and number_or_none(entry.value) is not None
    ]
    if not known:
        return nothing("light", "", "No trial has succeeded yet.").update_layout(height=300)
    values = drawable([point.value for point in known])
    places, _ = downsampled(range(len(known)), values, _MOST_POINTS)
    numbers = frozenset(front.trials if front else ())
    on_front = [place for place, point in enumerate(known) if point.number in numbers]
    places = sorted({*map(int, places), *on_front})
    shown = [known[place] for place in places]
    look = STATUS_LOOKS["SUCCEEDED"]
    points = go.Scatter(
        x=[point.place for point in shown],
        y=values[places],
        mode="markers",
        name="results",
        marker={"color": look.color, "size": 6, "opacity": 0.6},
        customdata=[point.number for point in shown],
        hovertemplate="trial %{customdata}: %{y:.6g}<extra></extra>",
    )
    line = _best_line(known) if front is None else _volume_line(front.history, known)
    figure = base_figure("light", "").add_traces([points, *line])
    figure.update_yaxes(ranged(value_axis(objective, values, values[on_front].tolist()), values, 0.05))
    figure.update_xaxes(title_text="finished trials" if by == "trials" else None, nticks=6)
    if front is not None:
        figure.update_layout(yaxis2={"title": {"text": "hypervolume"}, "overlaying": "y", "side": "right"})
    return figure.update_layout(height=300, title=None, margin={"t": 30, "r": 10}, uirevision="stays")


def _best_line(known: Sequence[_Point]) -> list[go.Scatter]:
    """Return the best so far as steps: a corner where it changed, and the end."""
    points = [point for point in known if number_or_none(point.best) is not None]
    if not points:
        return []
    corners = [point for before, point in pairwise(points) if point.best != before.best]
    shown = [points[0], *corners, *([points[-1]] if [points[0], *corners][-1] is not points[-1] else [])]
    return [_steps([(point.place, point.number, point.best) for point in shown], "best so far")]


def _volume_line(history: Sequence[VolumeEntry], known: Sequence[_Point]) -> list[go.Scatter]:
    places = {point.number: point.place for point in known}
    steps = [
        (places[entry.sequence_id], entry.sequence_id, entry.hypervolume)
        for entry in history
        if entry.sequence_id in places
    ]
    return [_steps(steps, "hypervolume").update(yaxis="y2")] if steps else []


def _steps(steps: Sequence[tuple[datetime | int, int, float | None]], name: str) -> go.Scatter:
    """Return a line of places, each with the number of its trial and a value."""
    import plotly.graph_objects as go

    places, numbers, values = zip(*steps, strict=True)
    return go.Scatter(
        x=places,
        y=values,
        mode="lines",
        name=name,
        line={"shape": "hv", "width": 2, "color": BEST},
        customdata=numbers,
        hovertemplate=f"{name}: %{{y:.6g}}<extra></extra>",
    )


def _place(time: float, count: int, by: By) -> datetime | int:
    """Return the place of a trial along the axis: local time has no zone, because plotly shows it unchanged."""
    return count if by == "trials" else datetime.fromtimestamp(time)
