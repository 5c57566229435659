"""Several experiments side by side: their best results by trials or by time, their parameters, and what differs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from nicegui import html, ui

from ...store import StoreError
from ...store.reading import TrialRow, flat
from ...telling import (
    ComparedExperiment,
    comparison_facts,
    comparison_notes,
    config_differences,
    number_text,
    setting_text,
    visible,
    who_text,
    why_not_compared,
)
from ..experiments import Experiments
from ..figures import SERIES, Objective, base_figure, drawable, nothing, number_or_none, ranged, value_axis
from ..secrecy import hidden_values
from .actions import show_refusal
from .elements import Place, attributed, panel, table
from .figure_view import BY, By, FigureView
from .frame import Where, experiment_frame
from .readers import may_change
from .side_by_side import SideBySide, best_places, show_rows

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_COMPARED = 8
_PERIOD = 5.0
# From how many of the smaller unit on the larger one is drawn.
_UNITS = (
    (3 * 86400.0, 86400.0, "days"),
    (2 * 3600.0, 3600.0, "hours"),
    (180.0, 60.0, "minutes"),
    (0.0, 1.0, "seconds"),
)


async def comparison_page(experiments: Experiments, experiment_id: str, others: str = "") -> None:
    """Show an experiment beside `others`, joined by commas, and keep them up to date."""
    names = list(dict.fromkeys([experiment_id, *filter(None, others.split(","))]))[:MOST_COMPARED]
    title = "Compare experiments"
    async with experiment_frame(experiments, experiment_id, title, "plots") as (_view, where, _live):
        html.h1(title)
        found, missing = await asyncio.to_thread(_read, experiments, names, with_secrets=may_change())
        if not found:
            raise LookupError(missing[0])
        for why in missing:
            show_refusal(why)
        page = _Comparison(where, [one.summary.id for one in found])
        page.show(found)

        async def refresh() -> None:
            found, _ = await asyncio.to_thread(_read, experiments, names, with_secrets=may_change())
            if found:  # else they were deleted meanwhile
                page.show(found)

        if any(one.summary.is_running for one in found):
            ui.timer(_PERIOD, refresh, immediate=False)


def _read(
    experiments: Experiments, names: Sequence[str], *, with_secrets: bool
) -> tuple[list[ComparedExperiment], list[str]]:
    """Return the experiments of these names, and why others cannot be read."""
    found, missing = list[ComparedExperiment](), list[str]()
    for name in names:
        try:
            one = ComparedExperiment.of(experiments.view(name))
        except (LookupError, StoreError) as error:
            missing.append(str(error))
            continue
        config = one.config if with_secrets else hidden_values(one.config)
        found.append(replace(one, config=config))
    return found, missing


class _Comparison:
    """The figure and the table, which can be updated."""

    def __init__(self, where: Where, ids: Sequence[str]) -> None:
        self._found: list[ComparedExperiment] = []
        self._by: By = "trials"
        with panel("") as section:
            attributed(section, aria_label="Best so far")
            with html.div().classes("pp-row pp-spread"):
                html.h2("Best so far")
                choice = ui.toggle(BY, value=self._by, on_change=lambda event: self._draw(event.value))
                choice.props("dense no-caps unelevated padding='1px 8px'")
            self._figure = FigureView("Best results of the experiments")
            self._notes = Place(html.div().classes("pp-stack"))
            others = ",".join(one for one in ids if one != where.experiment_id)
            address = where.path("plots", figure="edf", others=others)
            html.a("Distribution of all results", href=address)
        with panel("Side by side"):
            self._only_differences = ui.checkbox("Only differences", value=True)
            self._table = Place(html.div())
        self._only_differences.on_value_change(self._show_table)

    def show(self, found: list[ComparedExperiment]) -> None:
        """Show what was read."""
        self._found = found
        self._draw(self._by)
        notes = list(filter(None, (why_not_compared(found), *comparison_notes(found))))

        def draw() -> None:
            for note in notes:
                html.p(f"{visible(note[0].upper() + note[1:])}.").classes("pp-dim")

        self._notes.show(notes, draw)
        self._show_table()

    def _draw(self, by: By) -> None:
        self._by = by
        self._figure.show(comparison_figure(self._found, by))

    def _show_table(self) -> None:
        rows = list(comparison_rows(self._found))
        only_differences = bool(self._only_differences.value)

        def draw() -> None:
            with table(["", *_names(self._found)], "Experiments"):
                with html.tr():
                    html.th("Experiment").props("scope=row")
                    for one in self._found:
                        with html.td():
                            html.a(visible(one.summary.id), href=Where(one.summary.id).path())
                show_rows(rows, only_differences=only_differences)

        self._table.show((rows, only_differences), draw)


def comparison_rows(found: Sequence[ComparedExperiment]) -> Iterator[SideBySide]:
    """Yield what differs, or may differ, between experiments: their state, their best parameters, their settings."""
    facts = comparison_facts(found)
    *_, best_fact = facts
    reached = {place: one.best for place, one in enumerate(found) if one.best is not None}
    first = best_places(reached, found[0].goal.direction) if not why_not_compared(found) else []
    for name, values in facts.items():
        marked = first if name == best_fact else []
        yield SideBySide(name=name[0].upper() + name[1:], values=values, best=marked)
    best = [one.summary.best[0] if one.summary.best else None for one in found]
    yield SideBySide(name="Best trial", values=["" if trial is None else who_text(trial) for trial in best])
    flattened = [_parameters(trial) for trial in best]
    for name in dict.fromkeys(name for parameters in flattened for name in parameters):
        values = [number_text(parameters[name]) if name in parameters else "" for parameters in flattened]
        yield SideBySide(name=f"Best {name.removesuffix('._name')}", values=values)
    for name, settings in config_differences([one.config for one in found]).items():
        yield SideBySide(name=name, values=[setting_text(setting) for setting in settings])


def _parameters(trial: TrialRow | None) -> dict[str, object]:
    return {} if trial is None else dict(flat(trial.parameters))


def _names(found: Sequence[ComparedExperiment]) -> list[str]:
    """Return the names of experiments, with the ids of those that share a name."""
    names = [one.summary.name or one.summary.id for one in found]
    return [
        name if names.count(name) == 1 else f"{name} ({one.summary.id})"
        for name, one in zip(names, found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Point:
    """The best value after a number of trials, and after as many seconds of the experiment."""

    count: int
    seconds: float
    best: float


def _progress(one: ComparedExperiment) -> list[_Point]:
    """Return the points where the best value changed, and the last one."""
    points = [
        _Point(count, max(0.0, end - one.summary.created), best)
        for count, (end, best) in enumerate(zip(one.ends, one.curve, strict=True), start=1)
        if best is not None and number_or_none(best) is not None
    ]
    changes = [point for before, point in pairwise(points) if point.best != before.best]
    return list(dict.fromkeys([*points[:1], *changes, *points[-1:]]))


def comparison_figure(found: Sequence[ComparedExperiment], by: By) -> go.Figure:
    """Draw the best so far of experiments with one goal, by finished trials or by the time since each began."""
    goal = found[0].goal
    drawn = [
        (name, _progress(one)) for name, one in zip(_names(found), found, strict=True) if one.goal == goal
    ]
    drawn = [(name, points) for name, points in drawn if points]
    if not drawn:
        return nothing("light", "", "No trial has succeeded.").update_layout(height=300)
    longest = max(point.seconds for _, points in drawn for point in points)
    unit, word = next((unit, word) for least, unit, word in _UNITS if longest >= least)
    figure = base_figure("light", "")
    for place, (name, points) in enumerate(drawn):
        color, dash = SERIES[place % len(SERIES)]
        figure.add_scatter(
            x=[point.count if by == "trials" else point.seconds / unit for point in points],
            y=[point.best for point in points],
            mode="lines",
            name=visible(name),
            line={"shape": "hv", "color": color, "dash": dash, "width": 2},
            hovertemplate="%{x:.4~g}: best %{y:.6~g}<extra>%{fullData.name}</extra>",
        )
    values = drawable([point.best for _, points in drawn for point in points])
    title = "finished trials" if by == "trials" else f"{word} since the experiment began"
    return figure.update_layout(
        title=None,
        xaxis={"title": {"text": title}, "rangemode": "tozero"},
        yaxis=ranged(value_axis(Objective(name=goal.name, direction=goal.direction), values), values, 0.05),
        margin={"t": 30, "r": 10},
        showlegend=True,
        uirevision=by,
        height=340,
    )
