"""Timeline: when and where each attempt ran, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .figure_parts import Hover, base_figure, note, nothing, short
from .outline import Span
from .tables import ExperimentTable
from .theme import BEST, STATUS_LOOKS, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

_TITLE = "Timeline"
_NEW_BEST = Look("new best", BEST, "circle")
_MOST_BARS = 1500  # more attempts than these are drawn as lines
_SHORTEST = 0.002  # of the time that is shown: a narrower bar is invisible


def plot_timeline(table: ExperimentTable, *, theme: ThemeName = "light") -> go.Figure:
    """Draw the attempts of all trials as bars, in one row per worker, coloured by status or as a new best result.

    Attempts without a worker share as few rows as possible. Times are in this machine's time zone. A new best result
    is better, by the first objective, than those of all trials that had ended before.

    >>> from pitchpipe.server.figures import example_table
    >>> sorted(set(plot_timeline(example_table()).data[1].y))
    ['slot 0', 'slot 1', 'slot 2', 'slot 3']
    """
    spans = table.spans
    if not spans:
        return nothing(theme, _TITLE, "No trial has started yet.")
    now = table.now or max(max(span.start, span.end or 0.0) for span in spans)
    rows = _rows(spans, now)
    figure = base_figure(theme, _TITLE)
    count = sum(span.count for span in spans)
    is_small = count <= _MOST_BARS
    width = max(200 // len(set(rows)), 4)
    records = table.outline.new_bests_by_end(table.objectives[0], table.limits)
    looks = [
        _NEW_BEST if span.status == "SUCCEEDED" and span.number in records else STATUS_LOOKS.get(span.status)
        for span in spans
    ]
    for look in (_NEW_BEST, *STATUS_LOOKS.values()):
        group = [(span, row) for span, row, its in zip(spans, rows, looks, strict=True) if its is look]
        if group:
            if is_small:
                _add_bars(figure, table, group, now, look)
            else:
                _add_line(figure, group, now, look, width)
    names = sorted(set(rows), key=_natural, reverse=True)
    order = {"categoryorder": "array", "categoryarray": names}
    height = min(140 + 26 * len(names), 900) if len(names) > 8 else 340
    figure.update_layout(
        barmode="overlay",
        uniformtext={"mode": "hide", "minsize": 10},
        xaxis={"type": "date"},
        yaxis={"title": {"text": "worker"}, "type": "category", **order},
        showlegend=True,
        height=height,
    )
    if count > len(spans):
        text = f"{count:,} attempts are drawn as {len(spans):,}: those that follow each other are joined"
        note(figure, text)
    return figure


def _rows(spans: Sequence[Span], now: float) -> list[str]:
    """Return the row of each span: its worker, or a lane that is free at its time."""
    unplaced = [span for span in spans if not span.worker]
    numbers = iter(lanes([(span.start, span.end or now) for span in unplaced]))
    return [span.worker or str(next(numbers) + 1) for span in spans]


def lanes(intervals: Sequence[tuple[float, float]]) -> list[int]:
    """Return a lane for each interval: as few lanes as possible, without an overlap in any.

    >>> lanes([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)])
    [0, 1, 0]
    """
    free: list[float] = []
    placed = [0] * len(intervals)
    for place in sorted(range(len(intervals)), key=lambda index: intervals[index]):
        start, end = intervals[place]
        lane = next((number for number, until in enumerate(free) if until <= start), len(free))
        free[lane : lane + 1] = [end]
        placed[place] = lane
    return placed


def _natural(name: str) -> tuple[str, int, str]:
    """Return a sort key that puts worker 10 after worker 9."""
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name


Group = list[tuple[Span, str]]


def _moments(seconds: Iterable[float]) -> NDArray[np.float64]:
    """Return moments as plotly reads them, in ms, shape (n,), moved to local time because plotly has no time zones."""
    return np.array(
        [(moment + time.localtime(moment).tm_gmtoff) * 1000.0 for moment in seconds], dtype=np.float64
    )


def _add_bars(figure: go.Figure, table: ExperimentTable, group: Group, now: float, look: Look) -> None:
    starts = [one.start_time for one in table.trials if one.start_time is not None]
    shortest = _SHORTEST * (now - min(starts))
    records = {trial.number: trial for trial in table.trials}
    hover = Hover.of(table, [records[span.number] for span, _ in group])
    durations = [f"{short(row)}: {(span.end or now) - span.start:.3g} s" for span, row in group]
    figure.add_bar(
        base=_moments(span.start for span, _ in group),
        x=[max((span.end or now) - span.start, shortest) * 1000.0 for span, _ in group],
        y=np.array([row for _, row in group], dtype=object),
        orientation="h",
        name=look.name,
        marker={"color": look.color, "line": {"width": 1, "color": "rgba(255,255,255,0.45)"}},
        texttemplate="%{customdata}",
        textposition="inside",
        insidetextanchor="middle",
        insidetextfont={"color": "#ffffff"},
        textangle=0,
        **hover.at(more=durations),
    )


def _add_line(figure: go.Figure, group: Group, now: float, look: Look, width: int) -> None:
    """Draw thousands of spans as one broken line: bars would take seconds."""
    ends = [max(span.end or now, span.start + 0.001) for span, _ in group]
    gaps = np.full(len(group), np.nan)
    x = np.stack([_moments(span.start for span, _ in group), _moments(ends), gaps], axis=1).ravel()
    numbers = np.repeat([span.number for span, _ in group], 3)
    more = [f" and {one.count - 1:,} more" if one.count > 1 else "" for one, _ in group]
    figure.add_scattergl(
        x=x,
        y=[value for _, row in group for value in (row, row, None)],
        mode="lines",
        line={"width": min(width, 24), "color": look.color},
        name=look.name,
        customdata=numbers,
        text=np.repeat(more, 3) if any(more) else None,
        hovertemplate=f"<b>trial %{{customdata}}{'%{text}' if any(more) else ''}</b><br>%{{y}}<extra></extra>",
    )
