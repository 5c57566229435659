"""Several trials side by side: their curves, and the results and parameters in which they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from nicegui import html, ui

from ...store.reading import Curve, ExperimentView, FeedEvent, TrialDetail, flat
from ...telling import duration_text, number_text, status_text
from ..experiments import Experiments
from .elements import TRIAL_TONES, attributed, badge, panel, table
from .figure_view import FigureView, curve_figure
from .frame import Where, experiment_frame
from .side_by_side import SideBySide, best_places, show_rows

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
            rows = (*_result_rows(trials, self._directions), *_parameter_rows(trials))
            show_rows(rows, only_differences=bool(self._only_differences.value))


def _result_rows(trials: list[TrialDetail], directions: Mapping[str, str]) -> Iterator[SideBySide]:
    reported = (name for trial in trials for name in trial.values)
    for name in dict.fromkeys((*directions, *reported)):
        values = [trial.values.get(name) for trial in trials]
        numbers = {place: value for place, value in enumerate(values) if value is not None}
        yield SideBySide(
            name="Result" if name == "default" else name,
            values=["" if value is None else number_text(value) for value in values],
            best=best_places(numbers, directions.get(name)),
            notes=[_change(value, values[0]) for value in values],
        )
    yield SideBySide(name="Why it ended", values=[trial.reason for trial in trials])
    took = [trial.seconds for trial in trials]
    yield SideBySide(
        name="Took", values=["" if seconds is None else duration_text(seconds) for seconds in took]
    )


def _change(value: float | None, first: float | None) -> str:
    """Return how far a result is from the first, in percent; empty if that is not a number.

    >>> _change(0.9, 0.6), _change(0.6, 0.6), _change(1.0, 0.0)
    ('+50 %', '', '')
    """
    if value is None or not first or value == first:
        return ""
    return f"{100.0 * (value - first) / abs(first):+.3g} %"


def _parameter_rows(trials: list[TrialDetail]) -> Iterator[SideBySide]:
    flattened = [flat(trial.parameters) for trial in trials]
    for name in dict.fromkeys(name for parameters in flattened for name in parameters):
        values = [number_text(parameters[name]) if name in parameters else "" for parameters in flattened]
        yield SideBySide(name=name.removesuffix("._name"), values=values)
