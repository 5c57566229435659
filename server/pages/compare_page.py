"""Several trials side by side: their curves, and the results and parameters in which they differ."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui import html, ui

from ...store.reading import Curve, ExperimentView, FeedEvent, TrialDetail, flat
from ...telling import duration_text, number_text, status_text
from ..experiment_table import curve_metrics, reported_numbers
from ..experiments import Experiments
from .elements import TRIAL_TONES, Place, attributed, badge, metric_field, panel, table
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
        compared = await asyncio.to_thread(_Compared.read, view, names)
        page = _Comparison(view, where, names, compared)
        page.show(compared)
        numbers = {trial.sequence_id for trial in compared.trials}

        async def refresh(events: list[FeedEvent]) -> None:
            if not events or any(event.sequence_id in numbers for event in events):
                await page.read()

        live.on_change(refresh)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What is read of the trials: what they reported last, by number, and their `curves` in one of the `metrics`.

    `directions` are those of the objectives, by name.
    """

    trials: Sequence[TrialDetail]
    reported: Mapping[int, Mapping[str, float]]
    metrics: Sequence[str]
    curves: Sequence[Curve]
    directions: Mapping[str, str]

    @classmethod
    def read(cls, view: ExperimentView, names: Sequence[str], metric: str = "") -> _Compared:
        trials = [view.trial(name) for name in names]
        numbers = [trial.sequence_id for trial in trials]
        metrics = curve_metrics(view, numbers)
        return cls(
            trials=trials,
            reported=reported_numbers(view, trials, view.metric_names()),
            metrics=metrics,
            curves=view.curves(numbers, metric or metrics[0], _POINTS),
            directions={goal.name: goal.direction for goal in view.objectives()},
        )


class _Comparison:
    """The figure and the table, which can be updated."""

    def __init__(self, view: ExperimentView, where: Where, names: Sequence[str], compared: _Compared) -> None:
        self._view = view
        self._where = where
        self._names = names
        self._metric = compared.metrics[0]
        self._compared = compared
        with panel("Intermediate results") as self._drawn:
            self._fields = Place(html.div())
            self._figure = FigureView("Intermediate results of the trials")
        with panel("Side by side"):
            self._only_differences = ui.checkbox("Only differences", value=True)
            self._body = html.div()
        self._only_differences.on_value_change(self._show_table)

    async def read(self) -> None:
        """Read the trials again."""
        self.show(await asyncio.to_thread(_Compared.read, self._view, self._names, self._metric))

    def show(self, compared: _Compared) -> None:
        """Show what was read."""
        self._compared = compared
        self._drawn.set_visibility(any(curve.total for curve in compared.curves))
        self._fields.show(compared.metrics, lambda: self._metric_field(compared.metrics))
        self._figure.show(curve_figure(compared.curves, self._metric))
        self._show_table()

    def _metric_field(self, metrics: Sequence[str]) -> None:
        async def choose(event: Any) -> None:
            self._metric = event.value
            await self.read()

        if len(metrics) > 1:
            metric_field(metrics, self._metric, choose)

    def _show_table(self) -> None:
        trials = self._compared.trials
        self._body.clear()
        with self._body, table(["", *(f"Trial {trial.sequence_id}" for trial in trials)], "Trials"):
            with html.tr():
                html.th("Status").props("scope=row")
                for trial in trials:
                    with html.td(), html.div().classes("pp-row"):
                        badge(status_text(trial.status), TRIAL_TONES.get(trial.status, ""))
                        link = html.a("open", href=self._where.path(f"trials/{trial.sequence_id}"))
                        attributed(link, aria_label=f"Open trial {trial.sequence_id}")
            rows = (*_result_rows(self._compared), *_parameter_rows(trials))
            show_rows(rows, only_differences=bool(self._only_differences.value))


def _result_rows(compared: _Compared) -> Iterator[SideBySide]:
    """Yield the objectives and what is limited, whose final results alone count, other metrics, and the ends."""
    trials, directions = compared.trials, compared.directions
    finals = dict.fromkeys([*directions, *(name for trial in trials for name in trial.values)])
    others = sorted({name for values in compared.reported.values() for name in values}.difference(finals))
    columns = {name: [trial.values.get(name) for trial in trials] for name in finals}
    columns |= {name: [compared.reported[trial.sequence_id].get(name) for trial in trials] for name in others}
    for name, values in columns.items():
        numbers = {place: value for place, value in enumerate(values) if value is not None}
        yield SideBySide(
            name="Result" if name == "default" else name,
            values=["" if value is None else number_text(value) for value in values],
            best=best_places(numbers, directions.get(name)),
            notes=[_change(value, values[0]) for value in values],
        )
        if name == next(iter(finals)):
            last = [None if trial.status == "SUCCEEDED" else trial.last for trial in trials]
            if any(value is not None for value in last):
                yield SideBySide(
                    name="Last result", values=["" if one is None else number_text(one) for one in last]
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


def _parameter_rows(trials: Sequence[TrialDetail]) -> Iterator[SideBySide]:
    flattened = [flat(trial.parameters) for trial in trials]
    for name in dict.fromkeys(name for parameters in flattened for name in parameters):
        values = [number_text(parameters[name]) if name in parameters else "" for parameters in flattened]
        yield SideBySide(name=name.removesuffix("._name"), values=values)
