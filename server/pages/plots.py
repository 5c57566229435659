"""The figures of an experiment, one at a time, each with its options, kept up to date while it runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nicegui import html, ui

from ...store import StoreError
from ...store.reading import Condition, ExperimentView, FeedEvent, TrialQuery, escaped, visible
from ..experiment_table import read_table
from ..experiments import Experiments
from ..figures import ExperimentTable, existing_together
from .actions import show_refusal
from .brushing import brushed
from .elements import scripted
from .figure_choice import FIGURES, MOST_COMPARED, SMOOTHINGS, Choice, draw
from .figure_view import FigureView
from .frame import Where, experiment_frame

__all__ = ["plots_page"]

# Drawing costs time on both sides: a running experiment is redrawn after this many seconds and this many times the
# duration of the last drawing.
_PERIOD = 5.0
_SHARE = 10.0
_SCALES: Mapping[str, bool | None] = {"automatic": None, "linear": False, "logarithmic": True}
# Seconds in which the browser says how wide it is: a busy one loads plotly first, and NiceGUI's own limit is 1 s.
_PATIENCE = 60.0
# Pixels across which four panels of a figure fit side by side.
_WIDE = 900


async def plots_page(experiments: Experiments, experiment_id: str, choice: Choice) -> None:
    """Show a figure; `choice` is the one to start with."""
    async with experiment_frame(experiments, experiment_id, "Plots", "plots") as (view, where, live):
        html.h1("Plots").classes("pp-hidden")
        page = _Plots(experiments, view, where, choice)
        page.build(several=len(await asyncio.to_thread(view.objectives)) > 1)
        # The page appears at once; reading and drawing an experiment of many trials takes longer.
        ui.timer(0.01, page.begin, once=True)

        async def refresh(_events: list[FeedEvent]) -> None:
            where.show_status(await asyncio.to_thread(view.summary))
            page.is_stale = True

        live.on_change(refresh)
        live.on_tick(page.tick)


class _Plots:
    """The current figure and its options."""

    def __init__(self, experiments: Experiments, view: ExperimentView, where: Where, choice: Choice) -> None:
        self._experiments = experiments
        self._view = view
        self._where = where
        self._choice = choice
        self._table: ExperimentTable | None = None
        self._others: list[ExperimentTable] = []
        self._due = time.monotonic()
        self._controls: Any = None
        self._brush: Any = None
        self._figure: Any = None
        self._drawing: Any = None
        self.is_stale = False

    async def begin(self) -> None:
        """Read the experiment and draw it for the first time."""
        await self.read()
        if self._table is not None:
            self._choice = self._choice.known_in(self._table)
        self._show_controls()
        is_narrow = await ui.run_javascript("innerWidth", timeout=_PATIENCE) < _WIDE
        self._choice.columns = 1 if is_narrow else 4
        await self.draw()

    async def read(self) -> None:
        """Read the experiment, and those it is compared with."""
        self._table = await asyncio.to_thread(read_table, self._view, attempts=True)
        names = [name for name in self._choice.others if name != self._view.experiment_id]
        self._others = []
        for name in names:
            try:
                self._others.append(
                    await asyncio.to_thread(read_table, self._experiments.view(name), curves=0)
                )
            except (LookupError, StoreError) as error:
                show_refusal(str(error))

    def build(self, *, several: bool) -> None:
        """Make the tabs, the options and the place of the figure; the front is for `several` objectives."""
        with html.section().classes("pp-panel").props('aria-label="Figure"'):
            with ui.tabs() as tabs:
                for name, title in FIGURES.items():
                    if several or name != "pareto":
                        ui.tab(name, label=title)
            tabs.props("dense no-caps align=left outside-arrows mobile-arrows").style("max-width: 100%")
            tabs.set_value(self._choice.figure)
            tabs.on_value_change(self._change_figure)
            self._controls = html.div().classes("pp-row pp-tools").style("margin-top: .6rem")
            self._brush = html.div().classes("pp-row").props("role=status")
            self._drawing = ui.label("Drawing …").classes("pp-dim").props("role=status")
            with html.div().classes("pp-scroll pp-fade"):
                self._figure = FigureView("Figure of the experiment", where=self._where, fill=True)
            self._figure.on_brush(self._show_brushed)

    async def tick(self) -> None:
        """Redraw after a change, but not all the time."""
        if self.is_stale and time.monotonic() >= self._due:
            self.is_stale = False
            await self.read()
            await self.draw()

    async def draw(self) -> None:
        """Draw the chosen figure in a thread."""
        if self._table is None:
            return
        began = time.monotonic()
        self._drawing.set_visibility(True)
        choice = replace(self._choice)
        made = await asyncio.to_thread(draw, choice, self._table, self._others)
        if choice == self._choice:  # the choice has not changed meanwhile
            made.update_layout(uirevision=json.dumps(choice.query()))
            self._figure.show(made)
            self._drawing.set_visibility(False)
        took = time.monotonic() - began
        self._due = time.monotonic() + max(_PERIOD, _SHARE * took)

    async def _change_figure(self, event: Any) -> None:
        self._choice.figure = event.value
        self._remember()
        self._show_controls()
        await self.draw()

    def _remember(self) -> None:
        ui.run_javascript(scripted("pitchpipe.remember(CHOICES)", CHOICES=self._choice.query()))

    async def _show_brushed(self, ranges: list[Any]) -> None:
        """Say how many trials are within the brushed ranges, and link to them in the table."""
        if self._table is None:
            return
        where = brushed(self._table, ranges, self._choice.objective, self._choice.parameters or None)
        self._brush.clear()
        if not where:
            return
        query = TrialQuery(conditions=Condition.parse_all(where), statuses=("SUCCEEDED",), limit=0)
        total = (await asyncio.to_thread(self._view.trials, query)).total
        address = self._where.path("trials", where=where, status="SUCCEEDED")
        with self._brush:
            html.strong("1 trial" if total == 1 else f"{total:,} trials")
            html.a("Show them in the table", href=address)
            html.code(escaped(where)).classes("pp-dim")

    def _show_controls(self) -> None:
        """Show the options of the figure."""
        table = self._table
        self._controls.clear()
        self._brush.clear()
        if table is None:
            return
        names = [one.name for one in table.dimensions]
        with self._controls:
            if len(table.objectives) > 1 and self._choice.takes("objective"):
                self._choice.objective = self._choice.objective or table.objectives[0].name
                self._select("objective", "Objective", [one.name for one in table.objectives])
            if self._choice.takes("x") and len(names) > 1:
                first, second = existing_together(table.dimensions)
                self._choice.x = self._choice.x or first.name
                self._choice.y = self._choice.y or second.name
                self._select("x", "Across", names)
                self._select("y", "Up", names)
            if self._choice.takes("parameters"):
                self._select("parameters", "All parameters", names, multiple=True)
            if self._choice.takes("log"):
                self._scale_field()
            if self._choice.takes("smoothing"):
                self._select("smoothing", "Smoothing", list(SMOOTHINGS))
            if self._choice.takes("show_all"):
                box = ui.checkbox("Show all, however bad", value=self._choice.show_all)
                box.on_value_change(lambda event: self._choose("show_all", bool(event.value)))
            if self._choice.takes("others"):
                known = [view.experiment_id for view in self._experiments.views()]
                others = [name for name in known if name != self._view.experiment_id]
                self._select("others", "Compare with", others, multiple=True)

    def _scale_field(self) -> None:
        words = {scale: word for word, scale in _SCALES.items()}
        made = ui.select(list(_SCALES), label="Scale of the results", value=words[self._choice.log])
        made.props("outlined dense options-dense").style("min-width: 11rem")
        made.on_value_change(lambda event: self._choose("log", _SCALES[event.value]))

    def _select(self, field: str, label: str, options: list[Any], *, multiple: bool = False) -> None:
        value = getattr(self._choice, field)
        words = {one: visible(one) if isinstance(one, str) else one for one in options}
        made = ui.select(words, label=label, value=list(value) if multiple else value, multiple=multiple)
        made.props("outlined dense options-dense")
        if multiple:
            made.props("use-chips clearable")
        made.style("min-width: 11rem").on_value_change(lambda event: self._choose(field, event.value))

    async def _choose(self, field: str, value: Any) -> None:
        setattr(self._choice, field, tuple(value or ())[:MOST_COMPARED] if isinstance(value, list) else value)
        self._remember()
        if field == "others":
            await self.read()
        await self.draw()
