"""Figures on a page: the place of a figure, and the figures that only pages draw."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from nicegui.elements.plotly import Plotly

from ...protocol import Json
from ...store.reading import Curve, HistoryEntry, ParetoFront, VolumeEntry
from ...telling import parameter_texts
from ..figures import (
    BEST,
    SERIES,
    STATUS_LOOKS,
    Objective,
    base_figure,
    downsampled,
    drawable,
    nothing,
    number_or_none,
    ranged,
    short,
    value_axis,
)
from .elements import attributed, scripted
from .frame import Where

if TYPE_CHECKING:
    import plotly.graph_objects as go

_USUAL_HEIGHT = 320
_AXIS = 90  # pixels for an axis of parallel coordinates
_CLEAR = "rgba(0, 0, 0, 0)"
_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
# Points carry the number of their trial; a curve has it in its `meta`.
_OPEN_TRIAL = (
    "event => { const point = event.points?.[0];"
    " const trial = [point?.customdata ?? point?.data?.meta].flat()[0];"
    " if (Number.isInteger(trial)) location.href = ROOT + trial }"
)
# The ranges brushed on the axes of parallel coordinates, in their order.
_RANGES = (
    "() => emit((getHtmlElement(ID)?.data?.[0]?.dimensions ?? []).map(axis => axis.constraintrange ?? null))"
)


class _Plot(Plotly, component="figure.js"):
    """NiceGUI's element, drawn in the theme of the page."""


class FigureView:
    """A place for a figure; the user's zoom survives a redraw, and a click on a point opens its trial.

    The figure is `height` pixels high, or as high as it says, and at least as high as the window if it is to `fill` it.
    """

    def __init__(
        self, name: str, where: Where | None = None, *, height: int | None = None, fill: bool = False
    ) -> None:
        self._height = height
        self._fill = fill
        hidden = {"visible": False}
        layout = {"xaxis": hidden, "yaxis": hidden, "paper_bgcolor": _CLEAR, "plot_bgcolor": _CLEAR}
        self._plot = _Plot({"data": [], "layout": layout, "config": _CONFIG})
        # Until it is shown, its place has the same height, so that the page does not jump.
        self._plot.classes("pp-plot pp-awaited")
        self._set_height(_USUAL_HEIGHT)
        attributed(self._plot, role="figure", aria_label=name)
        if where is not None:
            root = where.path("trials") + "/"
            self._plot.on("plotly_click", js_handler=scripted(_OPEN_TRIAL, ROOT=root))

    def on_brush(self, brushed: Callable[[list[Any]], Awaitable[None]]) -> None:
        """Call `brushed` with the ranges on the axes of parallel coordinates whenever one has changed."""

        async def handle(event: Any) -> None:
            await brushed(event.args)

        self._plot.on("plotly_restyle", handle, js_handler=scripted(_RANGES, ID=self._plot.id))

    def show(self, figure: go.Figure) -> None:
        """Draw a figure."""
        figure.update_layout(paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)  # show the colour of the panel
        drawing = figure.to_plotly_json()
        layout = dict(drawing["layout"])
        layout.pop("template", None)  # the browser has it
        height = layout.pop("height", 420)
        axes = len(drawing["data"][0].get("dimensions") or ()) if drawing["data"] else 0
        self._plot.classes(remove="pp-awaited")
        self._set_height(height)
        self._plot.style["min-width"] = f"{_AXIS * axes}px"
        self._plot.update_figure({"data": drawing["data"], "layout": layout, "config": _CONFIG})

    def _set_height(self, usual: int) -> None:
        height = f"{self._height or usual}px"
        self._plot.style["height"] = f"max({height}, var(--pp-fill))" if self._fill else height


_PLAIN = {"title": None, "margin": {"t": 30, "r": 10}, "uirevision": "stays"}
_MARKERS_UP_TO = 60
_FEW = 10
_MOST_LINES = 12


def curve_figure(
    curves: Sequence[Curve], metric: str, parameters: Mapping[int, Json] | None = None
) -> go.Figure:
    """Draw the intermediate results of one trial, or of a few, by their numbers; the first one is 1, as in reasons.

    With the `parameters` of the trials, by the trial's number, the pointer shows them.

    >>> figure = curve_figure([Curve(7, [0, 1], [0.5, 0.25], 2)], "default")
    >>> figure.data[0].name, figure.data[0].x, figure.data[0].y
    ('trial 7', (1, 2), (0.5, 0.25))
    """
    texts = {number: "<br>".join(_parameter_lines(given)) for number, given in (parameters or {}).items()}
    drawn = [_Line(f"trial {one.sequence_id}", one, texts.get(one.sequence_id, "")) for one in curves]
    return _lines_figure(drawn, metric)


def metrics_figure(curves: Mapping[str, Curve]) -> go.Figure:
    """Draw the intermediate results of one trial in several metrics, by their names.

    >>> figure = metrics_figure({"loss": Curve(7, [0], [0.5], 1), "acc": Curve(7, [0], [0.8], 1)})
    >>> [(trace.name, trace.y) for trace in figure.data]
    [('loss', (0.5,)), ('acc', (0.8,))]
    """
    lines = [_Line("result" if name == "default" else short(name), one) for name, one in curves.items()]
    return _lines_figure(lines, next(iter(curves)) if len(curves) == 1 else "")


@dataclass(frozen=True, slots=True)
class _Line:
    """A curve with its name in the legend, and what the pointer shows beside the values."""

    name: str
    curve: Curve
    text: str = ""


def _lines_figure(lines: Sequence[_Line], metric: str) -> go.Figure:
    """Draw curves, all of one `metric` unless that is empty."""
    drawn = [line for line in lines if any(value is not None for value in line.curve.values)]
    if not drawn:
        return nothing("light", "", "No intermediate result has been reported.").update_layout(height=300)
    longest = max(line.curve.sequences[-1] for line in drawn) + 1
    figure = base_figure("light", "")
    for place, line in enumerate(drawn):
        color, dash = SERIES[place % len(SERIES)]
        curve = line.curve
        figure.add_scatter(
            x=[sequence + 1 for sequence in curve.sequences],
            y=curve.values,
            mode="lines+markers" if len(curve.values) <= _MARKERS_UP_TO else "lines",
            name=line.name,
            line={"color": color, "dash": dash, "width": 2},
            marker={"size": 5},
            meta=curve.sequence_id,
            text=line.text or None,
            hovertemplate="result %{x}: <b>%{y:.6~g}</b>"
            f"{'<br>%{text}' if line.text else ''}<extra>%{{fullData.name}}</extra>",
        )
    figure.update_layout(
        xaxis={"title": {"text": "intermediate result"}, **({"dtick": 1} if longest <= _FEW else {})},
        yaxis={"title": {"text": "result" if metric == "default" else short(metric) or None}},
        showlegend=len(drawn) > 1,
    )
    return figure.update_layout(height=_USUAL_HEIGHT, **_PLAIN)


def _parameter_lines(parameters: Json) -> list[str]:
    """Return parameters for plotly, one on a line; of many, the first ones."""
    texts = [f"{short(name)} = {short(text)}" for name, text in parameter_texts(parameters).items()]
    more = [f"and {len(texts) - _MOST_LINES} more"] if len(texts) > _MOST_LINES else []
    return [*texts[:_MOST_LINES], *more]


@dataclass(frozen=True, slots=True)
class StoppedTrial:
    """A trial that was stopped early: when, and its last intermediate result."""

    number: int
    time: float
    last: float


By = Literal["time", "trials"]
# Along the axis: the moment at which a trial ended, or how many had ended.
BY: dict[By, str] = {"time": "by time", "trials": "by trials"}

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
    *,
    ends: Sequence[float] = (),
    stopped: Sequence[StoppedTrial] = (),
) -> go.Figure:
    """Draw results by time or number, and the best so far; `history` is that of `ExperimentView.history`.

    `ends` are the moments at which trials ended, in order, by default those of the history; trials that were `stopped`
    early are open circles at their last result.

    With several objectives `front` is that of `ExperimentView.front`: its trials are always drawn, however bad they are
    by this objective, and its hypervolume takes the place of the best so far.

    >>> history = [HistoryEntry(number, 1e9 + number, float(number % 3), 0.0) for number in range(9)]
    >>> [len(trace.x) for trace in progress_figure(history, Objective()).data]
    [9, 2]
    """
    ends = ends or [entry.time for entry in history if entry.time is not None]
    results = [
        _Point(_place(entry.time, ends, by), entry.sequence_id, entry.value, entry.best)
        for entry in history
        if entry.time is not None and number_or_none(entry.value) is not None
    ]
    if not results:
        return nothing("light", "", "No trial has succeeded.").update_layout(height=300)
    values = drawable([point.value for point in results])
    places, _ = downsampled(range(len(results)), values, _MOST_POINTS)
    best = frozenset(front.trials if front else ())
    on_front = [place for place, point in enumerate(results) if point.number in best]
    places = sorted({*map(int, places), *on_front})
    shown = [results[place] for place in places]
    figure = base_figure("light", "")
    _add_points(figure, "SUCCEEDED", [(point.place, point.number, point.value) for point in shown])
    if stopped:
        _add_points(
            figure, "EARLY_STOPPED", [(_place(one.time, ends, by), one.number, one.last) for one in stopped]
        )
    if front is None:
        _add_best(figure, results, _place(ends[-1], ends, by))
    else:
        _add_volume(figure, front.history, results)
    every = drawable([*values, *(one.last for one in stopped)])
    yaxis = ranged(value_axis(objective, every, values[on_front].tolist()), every, 0.05)
    xaxis = {"title": {"text": "finished trials" if by == "trials" else None}, "nticks": 6}
    return figure.update_layout(xaxis=xaxis, yaxis=yaxis, height=300, **_PLAIN)


def _add_points(figure: go.Figure, status: str, points: Sequence[tuple[datetime | int, int, float]]) -> None:
    """Add trials that ended in one way, each with its place, number and result."""
    look = STATUS_LOOKS[status]
    places, numbers, values = zip(*points, strict=True)
    figure.add_scatter(
        x=places,
        y=values,
        mode="markers",
        name=look.name,
        marker={"color": look.color, "symbol": look.symbol, "size": look.size(6), "opacity": 0.6},
        customdata=numbers,
        hovertemplate="trial %{customdata}: %{y:.6~g}<extra></extra>",
    )


def _add_best(figure: go.Figure, results: Sequence[_Point], last: datetime | int) -> None:
    """Add the best so far as steps: a corner where it changed, and the `last` place."""
    points = [point for point in results if number_or_none(point.best) is not None]
    corners = [point for before, point in pairwise(points) if point.best != before.best]
    shown = [*points[:1], *corners, *(replace(point, place=last) for point in points[-1:])]
    steps = dict.fromkeys((point.place, point.number, point.best) for point in shown)
    _add_steps(figure, [*steps], "best so far")


def _add_volume(figure: go.Figure, history: Sequence[VolumeEntry], results: Sequence[_Point]) -> None:
    """Add the hypervolume of the front, on an axis of its own."""
    places = {point.number: point.place for point in results}
    known = [entry for entry in history if entry.sequence_id in places]
    steps = [(places[entry.sequence_id], entry.sequence_id, entry.hypervolume) for entry in known]
    _add_steps(figure, steps, "hypervolume", yaxis="y2")
    figure.update_layout(yaxis2={"title": {"text": "hypervolume"}, "overlaying": "y", "side": "right"})


def _add_steps(
    figure: go.Figure,
    steps: Sequence[tuple[datetime | int, int, float | None]],
    name: str,
    yaxis: str | None = None,
) -> None:
    """Add a line through places, each with the number of its trial and a value."""
    if steps:
        places, numbers, values = zip(*steps, strict=True)
        figure.add_scatter(
            x=places,
            y=values,
            yaxis=yaxis,
            mode="lines",
            name=name,
            line={"shape": "hv", "width": 2, "color": BEST},
            customdata=numbers,
            hovertemplate=f"{name}: %{{y:.6~g}}<extra></extra>",
        )


def _place(time: float, ends: Sequence[float], by: By) -> datetime | int:
    """Return the place of a trial along the axis: local time has no zone, because plotly shows it unchanged."""
    return bisect_right(ends, time) if by == "trials" else datetime.fromtimestamp(time)
