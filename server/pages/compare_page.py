"""Several trials side by side: their curves, and the results and parameters in which they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nicegui import html, ui

from ...store.reading import Curve, ExperimentView, FeedEvent, TrialDetail, flat
from ...telling import duration_text, escaped, number_text, status_text, visible
from ..experiments import Experiments
from .elements import TRIAL_TONES, attributed, badge, panel, table
from .figure_view import FigureView, curve_figure
from .frame import Where, experiment_frame

_MOST = 20
_POINTS = 300


async def compare_page(experiments: Experiments, experiment_id: str, trials: str = "") -> None:
    """Show the trials with these numbers or ids, joined by commas."""
    names = [word for word in trials.split(",") if word][:_MOST]
    title = "Compare trials"
    async with experiment_frame(experiments, experiment_id, title, "trials") as (view, where, live):
        if not names:
            raise LookupError("Select trials in the table to compare them.")
        html.h1(title)
        compared, curves = await asyncio.to_thread(_read, view, names)
        directions = {goal.name: goal.direction for goal in await asyncio.to_thread(view.objectives)}
        page = _Comparison(where, directions)
        page.show(compared, curves)
        numbers = {trial.sequence_id for trial in compared}

        async def refresh(events: list[FeedEvent]) -> None:
            if not events or any(event.sequence_id in numbers for event in events):
                page.show(*await asyncio.to_thread(_read, view, names))

        live.on_change(refresh)


def _read(view: ExperimentView, names: Sequence[str]) -> tuple[list[TrialDetail], list[Curve]]:
    trials = [view.trial(name) for name in names]
    return trials, view.curves([trial.sequence_id for trial in trials], points=_POINTS)


class _Comparison:
    """The figure and the table, which can be updated."""

    def __init__(self, where: Where, directions: Mapping[str, str]) -> None:
        self._where = where
        self._directions = directions
        self._trials: list[TrialDetail] = []
        with panel("Intermediate results") as self._drawn:
            self._figure = FigureView("Intermediate results of the trials")
        with panel("Side by side"):
            self._only_differences = ui.checkbox("Only differences", value=True)
            self._body = html.div()
        self._only_differences.on_value_change(self._show_table)

    def show(self, trials: list[TrialDetail], curves: list[Curve]) -> None:
        """Show what was read."""
        self._drawn.set_visibility(any(curve.total for curve in curves))
        self._figure.show(curve_figure(curves, "default"))
        self._trials = trials
        self._show_table()

    def _show_table(self) -> None:
        trials = self._trials
        self._body.clear()
        with self._body, table(["", *(f"Trial {trial.sequence_id}" for trial in trials)], "Trials"):
            with html.tr():
                html.th("Status").props("scope=row")
                for trial in trials:
                    with html.td(), html.div().classes("pp-row"):
                        badge(status_text(trial.status), TRIAL_TONES.get(trial.status, ""))
                        link = html.a("open", href=self._where.path(f"trials/{trial.sequence_id}"))
                        attributed(link, aria_label=f"Open trial {trial.sequence_id}")
            for row in (*_result_rows(trials, self._directions), *_parameter_rows(trials)):
                if row.differs or not self._only_differences.value:
                    _show_row(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of texts, one for each trial; `best` are the places of the best ones, `notes` follow the texts."""

    name: str
    values: Sequence[str]
    best: Sequence[int] = ()
    notes: Sequence[str] = ()

    @property
    def differs(self) -> bool:
        """Whether the trials differ here."""
        return len(set(self.values)) > 1


def _show_row(row: _Row) -> None:
    with html.tr().classes("pp-differs" if row.differs else ""):
        with html.th(visible(row.name)).props("scope=row"):
            if row.differs:
                html.span(" (differs)").classes("pp-hidden")
        for place, value in enumerate(row.values):
            with html.td():
                (html.strong if place in row.best else html.span)(escaped(value) or "–")
                if row.notes:
                    html.span(row.notes[place]).classes("pp-dim pp-note")


def _result_rows(trials: list[TrialDetail], directions: Mapping[str, str]) -> Iterator[_Row]:
    reported = (name for trial in trials for name in trial.values)
    for name in dict.fromkeys((*directions, *reported)):
        values = [trial.values.get(name) for trial in trials]
        numbers = {place: value for place, value in enumerate(values) if value is not None}
        yield _Row(
            name="Result" if name == "default" else name,
            values=["" if value is None else number_text(value) for value in values],
            best=_best_places(numbers, directions.get(name)),
            notes=[_change(value, values[0]) for value in values],
        )
    yield _Row(name="Why it ended", values=[trial.reason for trial in trials])
    took = [trial.seconds for trial in trials]
    yield _Row(name="Took", values=["" if seconds is None else duration_text(seconds) for seconds in took])


def _best_places(values: Mapping[int, float], direction: str | None) -> list[int]:
    """Return the places of the best values; none without a direction, or if all are equal.

    >>> _best_places({0: 0.5, 1: 0.9, 2: 0.9}, "maximize"), _best_places({0: 0.5, 1: 0.5}, "minimize")
    ([1, 2], [])
    """
    if direction is None or len(set(values.values())) < 2:
        return []
    best = (max if direction == "maximize" else min)(values.values())
    return [place for place, value in values.items() if value == best]


def _change(value: float | None, first: float | None) -> str:
    """Return how far a result is from the first, in percent; empty if that is not a number.

    >>> _change(0.9, 0.6), _change(0.6, 0.6), _change(1.0, 0.0)
    ('+50 %', '', '')
    """
    if value is None or not first or value == first:
        return ""
    return f"{100.0 * (value - first) / abs(first):+.3g} %"


def _parameter_rows(trials: list[TrialDetail]) -> Iterator[_Row]:
    flattened = [flat(trial.parameters) for trial in trials]
    for name in dict.fromkeys(name for parameters in flattened for name in parameters):
        values = [number_text(parameters[name]) if name in parameters else "" for parameters in flattened]
        yield _Row(name=name.removesuffix("._name"), values=values)
