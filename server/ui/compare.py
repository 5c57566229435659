"""Several trials side by side: parameters, results and curves, with the differences marked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from nicegui import html

from ...store.reading import Curve, ExperimentView, duration_text, flat, number_text
from ..experiments import Experiments
from .curve_figure import curve_figure
from .elements import badge, panel, table
from .frame import Where, experiment_frame
from .live import Event
from .plotting import FigureView
from .theme import theme_name
from .wording import TRIAL_TONES, trial_word

__all__ = ["compare_page"]

_MOST = 20
_POINTS = 300

Row = tuple[str, list[str]]


async def compare_page(experiments: Experiments, experiment_id: str, trials: str = "") -> None:
    """Show the trials with these numbers or ids, joined by commas."""
    names = [word for word in trials.split(",") if word][:_MOST]
    async with experiment_frame(experiments, experiment_id, "Compare trials", "trials") as (
        view,
        where,
        live,
    ):
        if not names:
            raise LookupError("Select trials in the table to compare them.")
        html.h1("Compare trials")
        found, curves = await asyncio.to_thread(_read, view, names)
        with panel("Intermediate results"):
            figure = FigureView("Intermediate results of the trials")
        body = html.div()

        def show(found: list[dict[str, Any]], curves: list[Curve]) -> None:
            called = {trial["sequence_id"]: f"trial {trial['sequence_id']}" for trial in found}
            figure.show(curve_figure(curves, called, "default", theme_name()))
            body.clear()
            with body:
                _show_table(found, where)

        show(found, curves)

        async def refresh(events: list[Event]) -> None:
            numbers = {trial["sequence_id"] for trial in found}
            if not events or any(event.get("sequence_id") in numbers for event in events):
                show(*await asyncio.to_thread(_read, view, names))
            where.show_status(await asyncio.to_thread(view.summary))

        live.on_change(refresh)


def _read(view: ExperimentView, names: Sequence[str]) -> tuple[list[dict[str, Any]], list[Curve]]:
    found = [view.trial(name) for name in names]
    return found, view.curves([trial["sequence_id"] for trial in found], points=_POINTS)


def _show_table(found: list[dict[str, Any]], where: Where) -> None:
    with panel("Side by side"), table(["", *(f"Trial {trial['sequence_id']}" for trial in found)], "Trials"):
        with html.tr():
            html.th("Status").props("scope=row")
            for trial in found:
                with html.td(), html.div().classes("pp-row"):
                    badge(trial_word(trial["status"]), TRIAL_TONES.get(trial["status"], ""))
                    html.a("open", href=where.path(f"trials/{trial['sequence_id']}")).props(
                        f'aria-label="Open trial {trial["sequence_id"]}"'
                    )
        for name, values in (*_result_rows(found), *_parameter_rows(found)):
            with html.tr():
                html.th(name).props("scope=row")
                for value in values:
                    _cell(value, differs=len(set(values)) > 1)


def _cell(value: str, *, differs: bool) -> None:
    with html.td():
        if differs and value:
            html.mark(value)
        else:
            html.span(value or "–")


def _result_rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    for name in sorted({name for trial in found for name in trial["values"]}):
        texts = [number_text(trial["values"].get(name, "")) for trial in found]
        yield "Result" if name == "default" else name, texts
    yield "Why it ended", [trial["reason"] for trial in found]
    took = [trial["duration"] for trial in found]
    yield "Took", ["" if seconds is None else duration_text(seconds) for seconds in took]


def _parameter_rows(found: list[dict[str, Any]]) -> Iterator[Row]:
    flattened = [flat(trial["parameters"]) for trial in found]
    for name in dict.fromkeys(name for parameters in flattened for name in parameters):
        yield name.removesuffix("._name"), [number_text(parameters.get(name, "")) for parameters in flattened]
