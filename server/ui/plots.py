"""The figures of an experiment, one at a time, each with its options, kept up to date while it runs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from nicegui import html, ui

from ...store import StoreError
from ...store.reading import ExperimentView
from ..experiment_table import read_table
from ..experiments import Experiments
from ..figures import ExperimentTable, ThemeName
from .changes import show_refusal
from .figure_choice import FIGURES, Choice, draw
from .frame import experiment_frame
from .live import Event
from .plotting import FigureView
from .theme import theme_name

__all__ = ["plots_page"]

# Drawing costs time on both sides: a running experiment is redrawn after this many seconds and this many times the
# duration of the last drawing.
_PERIOD = 5.0
_SHARE = 10.0
_MOST_COMPARED = 8


async def plots_page(experiments: Experiments, experiment_id: str, figure: str = "") -> None:
    """Show a figure; `figure` is the one to start with."""
    async with experiment_frame(experiments, experiment_id, "Plots", "plots") as (view, where, live):
        html.h1("Plots").classes("pp-hidden")
        page = _Plots(experiments, view, figure if figure in FIGURES else "history")
        page.build()
        # The page appears at once; reading and drawing an experiment of many trials takes longer.
        ui.timer(0.01, page.begin, once=True)

        async def refresh(_events: list[Event]) -> None:
            where.show_status(await asyncio.to_thread(view.summary))
            page.is_stale = True

        live.on_change(refresh)
        live.on_tick(page.tick)


class _Plots:
    """The current figure and its options."""

    def __init__(self, experiments: Experiments, view: ExperimentView, figure: str) -> None:
        self._experiments = experiments
        self._view = view
        self._choice = Choice(figure=figure)
        self._table: ExperimentTable | None = None
        self._others: list[ExperimentTable] = []
        self._due = time.monotonic()
        self._theme: ThemeName = theme_name()
        self._controls: Any = None
        self._figure: Any = None
        self._drawing: Any = None
        self.is_stale = False

    async def begin(self) -> None:
        """Read the experiment and draw it for the first time."""
        await self.read()
        self._show_controls()
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

    def build(self) -> None:
        """Make the tabs, the options and the place of the figure."""
        with html.section().classes("pp-panel").props('aria-label="Figure"'):
            with ui.tabs() as tabs:
                for name, title in FIGURES.items():
                    ui.tab(name, label=title)
            tabs.props("dense no-caps align=left outside-arrows mobile-arrows").style("max-width: 100%")
            tabs.set_value(self._choice.figure)
            tabs.on_value_change(self._change_figure)
            self._controls = html.div().classes("pp-row").style("margin-top: .6rem")
            self._drawing = ui.label("Drawing …").classes("pp-dim").props("role=status")
            with html.div().classes("pp-scroll"):
                self._figure = FigureView("Figure of the experiment", classes="pp-wide")

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
        made = await asyncio.to_thread(draw, choice, self._table, self._others, self._theme)
        if choice == self._choice:  # the choice has not changed meanwhile
            self._figure.show(made)
            self._drawing.set_visibility(False)
        took = time.monotonic() - began
        self._due = time.monotonic() + max(_PERIOD, _SHARE * took)

    async def _change_figure(self, event: Any) -> None:
        self._choice.figure = event.value
        self._show_controls()
        await self.draw()

    def _show_controls(self) -> None:
        """Show the options of the figure."""
        table = self._table
        self._controls.clear()
        if table is None:
            return
        names = [one.name for one in table.dimensions]
        with self._controls:
            if len(table.objectives) > 1 and self._choice.takes("objective"):
                self._choice.objective = self._choice.objective or table.objectives[0].name
                self._select("objective", "Objective", [one.name for one in table.objectives])
            if self._choice.takes("x") and len(names) > 1:
                self._choice.x, self._choice.y = self._choice.x or names[0], self._choice.y or names[1]
                self._select("x", "Across", names)
                self._select("y", "Up", names)
            if self._choice.takes("parameters"):
                self._select("parameters", "Parameters (all that vary)", names, multiple=True)
            if self._choice.takes("others"):
                known = [view.experiment_id for view in self._experiments.views()]
                others = [name for name in known if name != self._view.experiment_id]
                self._select("others", "Compare with", others, multiple=True)

    def _select(self, field: str, label: str, options: list[str], *, multiple: bool = False) -> None:
        value = getattr(self._choice, field)
        made = ui.select(options, label=label, value=list(value) if multiple else value, multiple=multiple)
        made.props("outlined dense options-dense" + (" use-chips clearable" if multiple else ""))
        made.style("min-width: 15rem").on_value_change(lambda event: self._choose(field, event.value))

    async def _choose(self, field: str, value: Any) -> None:
        setattr(
            self._choice, field, tuple(value or ())[:_MOST_COMPARED] if isinstance(value, list) else value
        )
        if field == "others":
            await self.read()
        await self.draw()
