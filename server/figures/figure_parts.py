"""What figures share: texts, axes, panels, points with their hover texts, and the figure that says why it is empty."""

from __future__ import annotations

import html
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from ...protocol import Objective, counted
from ...telling import escaped, is_bare, number_text, status_text, visible
from .dimensions import Dimension, Numbers, Points
from .tables import ExperimentTable, TrialRecord
from .theme import VIOLATES, Look, ThemeName, template

if TYPE_CHECKING:
    import plotly.graph_objects as go

_LONGEST = 40  # letters of a text
_LONGEST_NAME = 80  # where there is room for a name or an option that differs from another in the middle
_WIDE = 1000.0
_REACH = 10.0
_FEWEST_FOR_REACH = 5
_LAST_POWER = 307.0  # of ten: a float ends soon after it
_GL_POINTS = 4000  # more points than these are drawn by WebGL
_CROWD = 1000
_JITTER = 0.5
_OPTION, _SHORT_OPTION = 18, 10  # letters; where few ticks fit, an option is short too, else it lies across
_FEW_TICKS = 3
_NOTE = 50  # letters of a line below a figure
COLOR_BAR = 60  # pixels right of the axes
_HOVER_TRIALS = 3000  # of more trials, only number and result are shown: texts would be megabytes
_HOVER_LINES = 16
_HOVER_METRICS = 6  # beside the objectives and what is limited
_BRIEF_HOVER = "<b>trial %{customdata}</b><br>%{y:.6~g}<extra></extra>"


class Ticks(TypedDict, total=False):
    """The ticks of an axis or a colour bar: their places and texts."""

    tickvals: Sequence[float]
    ticktext: Sequence[str]


class Axis(Ticks):
    """What is set of an axis, by plotly's names."""

    type: str
    title: NotRequired[Mapping[str, str]]
    range: NotRequired[Sequence[float]]
    dtick: NotRequired[float | str]
    tickformat: NotRequired[str]
    zeroline: NotRequired[bool]


class HoverFields(TypedDict):
    """The fields of a trace that say what is shown of the trial under the pointer."""

    customdata: NDArray[np.int64]
    hovertemplate: str
    text: NotRequired[Sequence[str] | NDArray[np.object_]]


def written(value: float | str | None) -> str:
    """Return a number as it is written everywhere, and a text, which is a label, as it is.

    >>> written(0.123456789), written("relu"), written(None)
    ('0.123457', 'relu', '–')
    """
    if value is None:
        return "–"
    return number_text(value) if isinstance(value, float) else str(value)


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line, as `visible` shows it, cut in the middle when it is long.

    >>> shortened("a" * 30 + "<b>", 12)
    'aaaaa…aaa<b>'
    """
    text = visible(text) if is_bare(text) else escaped(text)  # what is not bare is a label, and JSON already
    if len(text) > longest:
        head = (longest - 1) // 2
        text = f"{text[:head]}…{text[head + 1 - longest :]}"
    return text


def short(text: str, longest: int = _LONGEST) -> str:
    """Return a short text, escaped for the places where plotly reads markup.

    >>> short("<b>lr</b>")
    '&lt;b&gt;lr&lt;/b&gt;'
    """
    return html.escape(shortened(text, longest), quote=False)


def labels(
    texts: Sequence[str], longest: int = _LONGEST, cut: Callable[[str, int], str] = short
) -> list[str]:
    """Return each text as `cut` does; those that would look the same are whole.

    >>> labels(["layer.first.rate", "layer.last.rate", "seed"], 12)
    ['layer.first.rate', 'layer.last.rate', 'seed']
    """
    short_ones = [cut(text, longest) for text in texts]
    counts = Counter(short_ones)
    return [
        label if counts[label] == 1 else cut(text, len(visible(text)))
        for label, text in zip(short_ones, texts, strict=True)
    ]


def base_figure(theme: ThemeName, title: str) -> go.Figure:
    """Return a figure without traces, in a theme, with its title."""
    import plotly.graph_objects as go

    return go.Figure(layout={"template": template(theme), "title": {"text": title}})


def nothing(theme: ThemeName, title: str, why: str) -> go.Figure:
    """Return a figure that says why there is nothing to see."""
    figure = base_figure(theme, title)
    write(figure, why, 0.5, 0.5, font={"size": 14})
    hidden = {"visible": False}
    return figure.update_layout(xaxis=hidden, yaxis=hidden, height=280)


def note(figure: go.Figure, *lines: str, beyond: int = 0) -> None:
    """Write the lines that are not empty below a figure, up to so many pixels `beyond` its axes on the right.

    What is longer than a phone is wide continues on the next line.
    """
    if lines := tuple(part for line in lines for part in textwrap.wrap(line, _NOTE, break_long_words=False)):
        text, below = "<br>".join(lines), {"yanchor": "top", "yshift": -52}
        write(figure, text, 1.0, 0.0, xanchor="right", align="right", xshift=beyond, **below)
        figure.update_layout(margin={"b": 66 + 18 * len(lines)})


def write(figure: go.Figure, text: str, x: float, y: float, **look: object) -> None:
    """Write a text over a figure, at a place from its lower left corner, (0, 0), to the upper right one, (1, 1)."""
    figure.add_annotation(text=text, x=x, y=y, xref="paper", yref="paper", **look)


def value_name(objective: Objective) -> str:
    """Return the label of an objective's axis."""
    return "result" if objective.name == "default" else objective.name


def is_wide(values: Numbers) -> bool:
    """Return whether positive numbers spread over so many orders of magnitude that only a logarithmic axis shows them.

    >>> is_wide(np.array([0.1, 5.0])), is_wide(np.array([0.1, 5e6])), is_wide(np.array([-0.1, 5e6]))
    (False, True, False)
    """
    return bool(values.size and values.min() > 0 and values.max() / _WIDE >= values.min())


def value_axis(
    objective: Objective,
    values: Numbers,
    front: Sequence[float] = (),
    *,
    log: bool | None = None,
    show_all: bool = False,
) -> Axis:
    """Return the axis of an objective: its name, which way is better, logarithmic where the values are far apart.

    `log` overrides the choice of the scale, unless a value is not positive. Results so bad that the differences between
    the others would disappear lie outside the axis, except those on the `front`: its title says how many there are, and
    a double click shows them. With `show_all` none lies outside.
    """
    if (is_wide(values) if log is None else log) and values.size and values.min() > 0:
        decades = float(np.log10(values.max()) - np.log10(values.min()))
        return {"title": {"text": value_title(objective)}, **_log_kind(decades)}
    kept = values if show_all else np.append(within_reach(values, objective.direction), front)
    ends = (float(kept.min()), float(kept.max())) if kept.size else (-math.inf, math.inf)
    outside = int(((values < ends[0]) | (values > ends[1])).sum())
    axis = Axis(type="linear", title={"text": value_title(objective, outside)})
    return {**axis, "range": list(ends)} if outside else axis


def value_title(objective: Objective, outside: int = 0) -> str:
    """Return the name of a metric, which way is better, if any, and how many values are outside.

    >>> value_title(Objective(name="loss"), 2), value_title(Objective(name="epochs", direction=None))
    ('loss (lower is better; 2 outside)', 'epochs')
    """
    words = {"minimize": "lower is better", "maximize": "higher is better", None: ""}
    facts = "; ".join(filter(None, (words[objective.direction], f"{outside:,} outside" if outside else "")))
    name = short(value_name(objective))
    return f"{name} ({facts})" if facts else name


def ranged(axis: Axis, values: Numbers, below: float, above: float = 0.05) -> Axis:
    """Return the axis with space `below` and `above` the values, each a share of the range that they cover.

    >>> ranged({"type": "linear"}, np.array([0.0, 10.0]), 0.2)["range"]
    [-2.0, 10.5]
    """
    if not values.size:
        return axis
    ends = axis.get("range") or (float(values.min()), float(values.max()))
    if axis["type"] == "log":
        ends = [math.log10(end) for end in ends]
    width = (ends[1] - ends[0]) or max(abs(ends[0]), 1.0) * 0.1
    return {**axis, "range": [ends[0] - below * width, ends[1] + above * width]}


def within_reach(values: Numbers, direction: str | None) -> Numbers:
    """Return the values except those that are worse than the middle half by more than ten times its width.

    Without a direction, both sides are worse.

    >>> within_reach(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 400.0]), "minimize").max()
    np.float64(5.0)
    """
    if values.size < _FEWEST_FOR_REACH:
        return values
    first, third = np.percentile(values, [25, 75])
    reach = _REACH * (third - first)
    if reach <= 0:
        return values
    least = -math.inf if direction == "minimize" else first - reach
    most = math.inf if direction == "maximize" else third + reach
    return values[(values >= least) & (values <= most)]


def axis_of(dimension: Dimension, ticks: int = 5) -> Axis:
    """Return the axis of a parameter: logarithmic for a log-uniform one, with options in the order of the space.

    A logarithmic axis has about as many `ticks` as given, a categorical one at most three times as many.
    """
    title = {"text": short(dimension.name, _LONGEST_NAME)}
    if dimension.categorical:
        count = len(dimension.options)
        places = range(0, count, math.ceil(count / (3 * ticks)) if count else 1)
        names = labels(dimension.options, _OPTION if ticks > _FEW_TICKS else _SHORT_OPTION)[:: places.step]
        marks = Ticks(tickvals=list(places), ticktext=names)
        return {"title": title, "type": "linear", "range": [-0.6, count - 0.4], "zeroline": False, **marks}
    low, high = dimension.bounds
    if dimension.log:
        ends = math.log10(low), math.log10(high)
        kind = _log_kind(ends[1] - ends[0], ticks)
    else:
        ends, kind = (low, high), Axis(type="linear")
        if dimension.integer and high - low <= 10:
            kind["dtick"] = 1
    pad = (ends[1] - ends[0]) * 0.04 or abs(ends[0]) * 0.1 or 0.5
    first, last = ends[0] - pad, ends[1] + pad
    if dimension.log:
        first, last = max(first, -_LAST_POWER), min(last, _LAST_POWER)
    return {"title": title, **kind, "range": [first, last]}


def _log_kind(decades: float, ticks: int = 5) -> Axis:
    """Return a logarithmic axis with whole numbers at about this many ticks: powers of ten, or 1, 2 and 5 times these.

    plotly's own labels leave out the power between two powers of ten: 2 for 20.

    >>> _log_kind(3.0), _log_kind(1.5)["dtick"], "dtick" in _log_kind(0.5)
    ({'type': 'log', 'tickformat': '.6~g', 'dtick': 1}, 'D2', False)
    """
    axis = Axis(type="log", tickformat=".6~g")
    if decades < 1:
        return axis  # its ticks are at equal distances
    return {**axis, "dtick": "D2" if decades < max(2.0, ticks / 2) else max(math.ceil(decades / ticks), 1)}


def points(look: Look, x: Any, y: Any, hover: HoverFields) -> go.Scatter | go.Scattergl:
    """Draw trials as points with the given look. `hover` comes from `Hover.at`."""
    import plotly.graph_objects as go

    kind = go.Scattergl if len(x) > _GL_POINTS else go.Scatter
    return kind(
        x=x,
        y=y,
        mode="markers",
        name=look.name,
        marker={"color": look.color, "symbol": look.symbol, **crowded(len(x), look)},
        **hover,
    )


def crowded(count: int, look: Look) -> dict[str, float]:
    """Return size and opacity for this many points: thousands are small and translucent."""
    if count < _CROWD:
        return {"size": look.size(7), "opacity": 0.9}
    return {"size": look.size(4), "opacity": 0.6}


def panels(
    theme: ThemeName, title: str, rows: int, columns: int, *, shared_x: bool = False, marks: bool = False
) -> go.Figure:
    """Make a figure of panels; with `marks` each has a second, hidden axis from 0 to 1 for marks along its bottom."""
    from plotly.subplots import make_subplots

    figure = make_subplots(
        rows=rows,
        cols=columns,
        shared_xaxes=shared_x,
        vertical_spacing=min(0.08 if shared_x else 0.14, 0.5 / rows),
        horizontal_spacing=min(0.06, 0.5 / columns),
        specs=[[{"secondary_y": marks}] * columns] * rows,
    )
    if marks:
        hidden = {"range": [0, 1], "visible": False, "fixedrange": True}
        for row in range(1, rows + 1):
            figure.update_yaxes(hidden, row=row, col=1, secondary_y=True)
            figure.update_xaxes(domain=[0.0, 1.0], row=row, col=1)  # room for a second axis is not needed
    return figure.update_layout(template=template(theme), title={"text": title}, hovermode="closest")


def spread(dimension: Dimension, parameters: Points, numbers: NDArray[Any]) -> Numbers:
    """Return positions on an axis. Points with the same option are placed side by side, the same way every time.

    >>> act = Dimension(name="act", key=("act",), options=("relu", "tanh"), categorical=True)
    >>> spread(act, [{"act": "tanh"}] * 3, np.arange(3)).round(2).tolist()
    [0.75, 1.06, 0.87]
    """
    places = dimension.positions(parameters)
    if not dimension.categorical:
        return places
    golden = (math.sqrt(5.0) - 1.0) / 2.0  # its multiples fill the interval evenly, however many there are
    return places + ((numbers * golden) % 1.0 - 0.5) * _JITTER


@dataclass(frozen=True, slots=True)
class Hover:
    """The hover texts of trials, shape (n,), or only their numbers where there are too many trials."""

    numbers: NDArray[np.int64]
    texts: NDArray[np.object_] | None

    @classmethod
    def of(cls, table: ExperimentTable, trials: Sequence[TrialRecord], panels: int = 1) -> Hover:
        """Return the texts of trials: number, results, how it ended, parameters. Markup in them is escaped.

        `panels` is how many times the figure draws each trial.

        >>> trials = [TrialRecord(7, "SUCCEEDED", {"x": 0.25}, {"default": 2.0})]
        >>> Hover.of(ExperimentTable.of("demo", [Objective()], trials), trials).texts[0]
        '<b>trial 7</b><br>result: <b>2</b><br>x = 0.25'
        """
        numbers = np.array([trial.number for trial in trials], dtype=np.int64)
        if len(trials) * panels > _HOVER_TRIALS:
            return cls(numbers, None)
        texts = np.empty(len(trials), dtype=object)
        metrics = [*dict.fromkeys([*table.objectives, *table.limits])]
        metrics += [Objective(name=name, direction=None) for name in table.metrics[:_HOVER_METRICS]]
        texts[:] = [_hover_text(trial, table, metrics) for trial in trials]
        return cls(numbers, texts)

    def at(self, where: Any = slice(None), more: Sequence[str] = ()) -> HoverFields:
        """Return the fields of a trace for some of the trials (indices or a mask); `more` adds a line to each text."""
        if self.texts is None:
            return {"customdata": self.numbers[where], "hovertemplate": _BRIEF_HOVER}
        texts = self.texts[where]
        if len(more):
            texts = [f"{text}<br>{line}" for text, line in zip(texts, more, strict=True)]
        return {"customdata": self.numbers[where], "text": texts, "hovertemplate": "%{text}<extra></extra>"}


def _hover_text(trial: TrialRecord, table: ExperimentTable, metrics: Sequence[Objective]) -> str:
    lines = [f"<b>trial {trial.number}</b>"]
    if trial.repeats:
        lines = [f"<b>family {trial.number}</b>, mean of {counted(trial.repeats, 'repeat')}"]
    for metric in metrics:
        if (result := table.value(trial, metric.name)) is not None:
            lines.append(f"{short(value_name(metric))}: <b>{written(result)}</b>")
    if table.violates(trial):
        lines.append(VIOLATES.name)
    if trial.status != "SUCCEEDED":
        lines.append(short(": ".join(filter(None, (status_text(trial.status), trial.reason))), 80))
    if table.code_changes and trial.code:
        lines.append(f"code: {short(trial.code)}")
    pairs = [(dimension.name, dimension.value(trial.parameters)) for dimension in table.dimensions]
    given = [
        f"{short(name, _LONGEST_NAME)} = {short(written(value), _LONGEST_NAME)}"
        for name, value in pairs
        if value is not None
    ]
    more = [f"and {len(given) - _HOVER_LINES} more"] if len(given) > _HOVER_LINES else []
    return "<br>".join([*lines, *given[:_HOVER_LINES], *more])
