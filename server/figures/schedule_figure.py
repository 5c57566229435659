"""Schedules: with which parameters the trials of a population were trained when, and whose checkpoints they copied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...protocol import counted
from ...telling import copied_text
from .dimensions import Dimension, completed
from .figure_parts import axis_of, labels, note, nothing, panels, short, written
from .tables import ExperimentTable, left_out
from .theme import BEST, BLUE, VERMILION, Look, ThemeName

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ...store.reading import ScheduleStep

_TITLE = "Schedules"
_MOST_PANELS = 12
_PANEL_HEIGHT = 150
_TICKS = 3
_LONGEST_NAME = 20  # letters for which a panel is high enough
_MEMBER = Look("trials", BLUE, "circle")
_COPY = Look("continues from another's checkpoint", VERMILION, "diamond")

# Of a trial: its number, its steps, and how many results it has.
_Line = tuple[int, Sequence["ScheduleStep"], int]


def plot_schedule(
    table: ExperimentTable, parameters: Sequence[str] | None = None, *, theme: ThemeName = "light"
) -> go.Figure:
    """Draw the parameters of each trial of a population over its results, a panel for each parameter.

    A diamond is where a trial continues from another one's checkpoint. The thick line is the training that led to the
    best trial, through the trials whose checkpoints were copied. Without `parameters` at most 12 are drawn. Raises
    `KeyError` for an unknown one.

    >>> from pitchpipe.server.figures import example_table
    >>> plot_schedule(example_table()).layout.annotations[0].text
    'No trial has continued with other parameters, as those of a population (PBT, PB2) do.'
    """
    lines: list[_Line] = [(one.sequence_id, one.own, one.own_results) for one in table.schedules]
    points = [step.parameters for _, steps, _ in lines for step in steps]
    chosen = [completed(dimension, points) for dimension in table.chosen(parameters)]
    shown = chosen if parameters is not None else chosen[:_MOST_PANELS]
    if not lines or not shown:
        why = "No trial has continued with other parameters, as those of a population (PBT, PB2) do."
        return nothing(theme, _TITLE, why if not lines else "No parameter varies.")
    figure = panels(theme, _TITLE, len(shown), 1, shared_x=True)
    names = labels([dimension.name for dimension in shown], _LONGEST_NAME)
    for row, (dimension, name) in enumerate(zip(shown, names, strict=True), start=1):
        _add_panel(figure, row, dimension, lines, _best(table))
        figure.update_yaxes({**axis_of(dimension, _TICKS), "title": {"text": name}}, row=row, col=1)
    figure.update_xaxes({"title": {"text": "results"}}, row=len(shown), col=1)
    figure.update_layout(height=110 + _PANEL_HEIGHT * len(shown))
    note(figure, left_out(len(lines), len(table.outline)), left_out(len(shown), len(chosen), "parameters"))
    return figure


def _best(table: ExperimentTable) -> list[_Line]:
    """Return the training that led to the best trial that has a schedule; nothing before one has succeeded."""
    goal = table.objectives[0]
    found = {trial.number: value for trial in table.trials if (value := trial.value(goal.name)) is not None}
    known = [one for one in table.schedules if one.sequence_id in found]
    best = min(known, key=lambda one: goal.sign * found[one.sequence_id], default=None)
    return [] if best is None else [(best.sequence_id, best.steps, best.results)]


def _add_panel(
    figure: go.Figure, row: int, dimension: Dimension, lines: Sequence[_Line], best: Sequence[_Line]
) -> None:
    is_first = row == 1
    groups = [
        (lines, _MEMBER.name, {"color": _MEMBER.color, "width": 1.5}, 0.55),
        *([(best, f"best: trial {best[0][0]}", {"color": BEST, "width": 3}, 1.0)] if best else []),
    ]
    for group, name, line, opacity in groups:
        figure.add_scatter(
            **_drawn(dimension, group),
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=is_first,
            line={"shape": "hv", **line},
            opacity=opacity,
            hovertemplate="%{text}<extra></extra>",
            row=row,
            col=1,
        )
    copies = [(number, step) for number, steps, _ in lines for step in steps if step.copied_from is not None]
    if copies:
        figure.add_scatter(
            x=[step.begin for _, step in copies],
            y=_places(dimension, [step for _, step in copies]),
            customdata=[number for number, _ in copies],
            text=[_hover(dimension, number, step) for number, step in copies],
            mode="markers",
            name=_COPY.name,
            legendgroup=_COPY.name,
            showlegend=is_first,
            marker={"color": _COPY.color, "symbol": _COPY.symbol, "size": 8},
            hovertemplate="%{text}<extra></extra>",
            row=row,
            col=1,
        )


def _drawn(dimension: Dimension, lines: Sequence[_Line]) -> dict[str, object]:
    """Return the points of several lines in one trace, with gaps between them; a step lasts until the next one."""
    x, y, numbers, texts = list[float | None](), list[float | None](), list[int](), list[str]()
    for number, steps, end in lines:
        values = _places(dimension, steps)
        hover = [_hover(dimension, number, step) for step in steps]
        x += [*(step.begin for step in steps), end, None]
        y += [*values, values[-1], None]
        texts += [*hover, hover[-1], ""]
        numbers += [number] * (len(steps) + 2)
    return {"x": x, "y": y, "customdata": numbers, "text": texts}


def _places(dimension: Dimension, steps: Sequence[ScheduleStep]) -> list[float | None]:
    """Return positions on the axis; None where a parameter does not exist."""
    places = dimension.positions([step.parameters for step in steps]).tolist()
    return [None if math.isnan(place) else place for place in places]


def _hover(dimension: Dimension, number: int, step: ScheduleStep) -> str:
    """Return the text of a step; markup in it is escaped."""
    value = short(written(dimension.value(step.parameters)))
    text = (
        f"<b>trial {number}</b><br>after {counted(step.begin, 'result')}: {short(dimension.name)} = {value}"
    )
    copied = copied_text(step)
    return f"{text}<br>continues from {copied}" if copied else text
