"""The page with the figures of an experiment, one at a time, each with its options, kept up to date while it runs."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nicegui import html, ui

from ...protocol import counted
from ...store import StoreError
from ...store.reading import Condition, ExperimentView, FeedEvent, TrialQuery
from ...telling import escaped, visible
from .. import figures
from ..experiment_table import read_table
from ..experiments import Experiments
from ..figures import ExperimentTable, contour_axes
from .actions import show_refusal
from .brushing import brushed
from .elements import scripted
from .figure_view import FigureView
from .frame import Where, experiment_frame

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Drawing costs time on both sides: a running experiment is redrawn after this many seconds and this many times the
# duration of the last drawing.
_PERIOD = 5.0
_SHARE = 10.0
# Whether each scale is logarithmic.
_SCALES: Mapping[str, bool | None] = {"automatic": None, "linear": False, "logarithmic": True}
# Seconds in which the browser says how wide it is: a busy one loads plotly first, and NiceGUI's own limit is 1 s.
_PATIENCE = 60.0
# Pixels across which four panels of a figure fit side by side.
_WIDE = 900
# Figures that need the curves of the chosen metric.
_OF_CURVES = ("curves", "importance", "contour")


async def plots_page(experiments: Experiments, experiment_id: str, choice: Choice) -> None:
    """Show a figure; `choice` is the one to start with."""
    async with experiment_frame(experiments, experiment_id, "Plots", "plots") as (view, where, live):
        html.h1("Plots").classes("pp-hidden")
        hidden = await asyncio.to_thread(_without_content, view)
        page = _Plots(experiments, view, where, choice, hidden=hidden)
        # The page appears at once; reading and drawing an experiment of many trials takes longer.
        ui.timer(0.01, page.begin, once=True)

        async def refresh(_events: list[FeedEvent]) -> None:
            page.is_stale = True

        live.on_change(refresh)
        live.on_tick(page.tick)


def _without_content(view: ExperimentView) -> list[str]:
    """Return the figures for which an experiment has nothing: a front of one objective, schedules of no population."""
    shown = {"pareto": len(view.objectives()) > 1, "schedule": view.has_schedules()}
    return [name for name, is_shown in shown.items() if not is_shown]


class _Plots:
    """The current figure and its options."""

    def __init__(
        self,
        experiments: Experiments,
        view: ExperimentView,
        where: Where,
        choice: Choice,
        *,
        hidden: Container[str],
    ) -> None:
        self._experiments = experiments
        self._view = view
        self._where = where
        self._choice = choice
        self._table: ExperimentTable | None = None
        self._read_for: tuple[str | None, int | None] = None, None  # the metric of the curves, and the step
        self._others: list[ExperimentTable] = []
        self._due = time.monotonic()
        self.is_stale = False
        with html.section().classes("pp-panel").props('aria-label="Figure"'):
            with ui.tabs() as tabs:
                for name, (title, _) in _FIGURES.items():
                    if name not in hidden:
                        ui.tab(name, label=title)
            tabs.props("dense no-caps align=left outside-arrows mobile-arrows").style("max-width: 100%")
            tabs.set_value(choice.figure)
            tabs.on_value_change(self._change_figure)
            self._controls = html.div().classes("pp-row pp-tools").style("margin-top: .6rem")
            self._brush = html.div().classes("pp-row").props("role=status")
            self._drawing = ui.label("Drawing …").classes("pp-dim").props("role=status")
            with html.div().classes("pp-scroll"):
                self._figure = FigureView("Figure of the experiment", where=where, fill=True)
            self._figure.on_brush(self._show_brushed)

    async def begin(self) -> None:
        """Read the experiment and draw it for the first time."""
        await self.read()
        if self._table is not None:
            self._choice = self._choice.known_in(self._table)
        await self._choose_axes()
        self._show_controls()
        is_narrow = await ui.run_javascript("innerWidth", timeout=_PATIENCE) < _WIDE
        self._choice.columns = 1 if is_narrow else 4
        await self.draw()

    async def read(self) -> None:
        """Read the experiment, and those it is compared with."""
        self._read_for = metric, step = self._to_read()
        self._table = await asyncio.to_thread(
            read_table, self._view, attempts=True, metric=metric, step=step, schedules=True
        )
        names = [name for name in self._choice.others if name != self._view.experiment_id]
        self._others = []
        for name in names:
            try:
                other = self._experiments.view(name)
                self._others.append(await asyncio.to_thread(read_table, other, curves=0))
            except (LookupError, StoreError) as error:
                show_refusal(str(error))

    def _to_read(self) -> tuple[str | None, int | None]:
        """Return the metric whose curves the figure needs, and the step at which it takes the trials."""
        metric, _ = self._read_for
        if self._table is not None and self._choice.figure in _OF_CURVES:
            metric = self._choice.known_in(self._table).objective
            metric = None if metric == self._table.objectives[0].name else metric  # which is the usual one
        return metric, self._choice.step if self._choice.takes("stopped") else None

    async def _choose_axes(self) -> None:
        """Begin a contour with the two parameters that matter most."""
        table, choice = self._table, self._choice
        if table is None or choice.figure != "contour" or (choice.x and choice.y):
            return
        names = await asyncio.to_thread(contour_axes, table, choice.objective)
        others = dict.fromkeys([*names, *(dimension.name for dimension in table.dimensions)])
        free = [name for name in others if name not in (choice.x, choice.y)]
        choice.x = choice.x or next(iter(free[:1]), "")
        choice.y = choice.y or next((name for name in free if name != choice.x), "")

    async def tick(self) -> None:
        """Redraw after a change, but not all the time."""
        if self.is_stale and time.monotonic() >= self._due:
            self.is_stale = False
            before = self._offered()
            await self.read()
            if self._offered() != before:
                self._show_controls()
            await self.draw()

    def _offered(self) -> object:
        """Return what is there to choose from, which may grow while the experiment runs."""
        table = self._table
        if table is None:
            return None
        return _metrics_of(table), table.curve_count > 0, "EARLY_STOPPED" in table.outline.statuses

    async def draw(self) -> None:
        """Draw the chosen figure in a thread."""
        if self._table is None:
            return
        began = time.monotonic()
        self._drawing.set_visibility(True)
        if self._read_for != self._to_read():
            await self.read()
        choice = replace(self._choice)
        figure = await asyncio.to_thread(_draw, choice, self._table, self._others)
        if choice == self._choice:  # the choice has not changed meanwhile
            figure.update_layout(uirevision=json.dumps(choice.query()))
            self._figure.show(figure)
            self._drawing.set_visibility(False)
        took = time.monotonic() - began
        self._due = time.monotonic() + max(_PERIOD, _SHARE * took)

    async def _change_figure(self, event: Any) -> None:
        self._choice.figure = event.value
        await self._choose_axes()
        self._remember()
        self._show_controls()
        await self.draw()

    def _remember(self) -> None:
        ui.run_javascript(scripted("pitchpipe.remember(CHOICES)", CHOICES=self._choice.query()))

    async def _show_brushed(self, ranges: list[Any]) -> None:
        """Say how many trials are within the brushed ranges, and link to them in the table."""
        if self._table is None:
            return
        choice = self._choice
        found = brushed(
            self._table, ranges, choice.objective, choice.parameters or None, stopped=choice.stopped
        )
        self._brush.clear()
        if all(range_ is None for range_ in ranges):
            return
        conditions = Condition.parse_all(found.where) if found.where else ()
        query = TrialQuery(conditions=conditions, statuses=found.statuses, limit=0)
        total = (await asyncio.to_thread(self._view.trials, query)).total
        asked = {"where": found.where, "status": ",".join(found.statuses)}
        address = self._where.path("trials", **{name: value for name, value in asked.items() if value})
        with self._brush:
            html.strong(counted(total, "trial"))
            html.a("Show them in the table", href=address)
            if found.where:
                html.code(escaped(found.where)).classes("pp-dim")

    def _show_controls(self) -> None:
        """Show the options of the figure."""
        table = self._table
        self._controls.clear()
        self._brush.clear()
        if table is None:
            return
        names = [dimension.name for dimension in table.dimensions]
        goals = [objective.name for objective in table.objectives]
        metrics = _metrics_of(table)
        with self._controls:
            if len(metrics) > 1 and self._choice.takes("metric"):
                self._choice.objective = self._choice.objective or goals[0]
                self._select("objective", "Metric", metrics)
            if len(goals) > 1 and self._choice.takes("objective"):
                if self._choice.objective not in goals:
                    self._choice.objective = goals[0]
                self._select("objective", "Objective", goals)
            if self._choice.takes("x") and len(names) > 1:
                self._select("x", "Across", names)
                self._select("y", "Up", names)
            if self._choice.takes("parameters"):
                self._select("parameters", "All parameters", names, multiple=True)
            if self._choice.takes("log"):
                self._select("scale", "Scale of the results", list(_SCALES))
            if self._choice.takes("smoothing"):
                self._select("smoothing", "Smoothing", list(_SMOOTHINGS))
            if self._choice.takes("stopped") and table.curve_count:
                self._step_field()
            if self._choice.takes("stopped") and "EARLY_STOPPED" in table.outline.statuses:
                self._checkbox("stopped", "Early-stopped trials")
            if self._choice.takes("show_all"):
                self._checkbox("show_all", "Show all, however bad")
            if self._choice.takes("others"):
                names = [view.experiment_id for view in self._experiments.views()]
                others = [name for name in names if name != self._view.experiment_id]
                self._select("others", "Compare with", others, multiple=True)

    def _select(self, field: str, label: str, options: list[Any], *, multiple: bool = False) -> None:
        value = getattr(self._choice, field)
        words = {option: visible(option) if isinstance(option, str) else option for option in options}
        control = ui.select(words, label=label, value=list(value) if multiple else value, multiple=multiple)
        control.props("outlined dense options-dense")
        if multiple:
            control.props("use-chips clearable")
        control.style("min-width: 11rem").on_value_change(lambda event: self._choose(field, event.value))

    def _checkbox(self, field: str, label: str) -> None:
        box = ui.checkbox(label, value=getattr(self._choice, field))
        box.on_value_change(lambda event: self._choose(field, bool(event.value)))

    def _step_field(self) -> None:
        """Show a field for the number of the intermediate result at which all trials are drawn."""

        async def choose(event: Any) -> None:
            await self._choose("step", None if event.value is None else max(int(event.value), 1))

        field = ui.number("At intermediate result", value=self._choice.step, min=1, precision=0, step=1)
        field.props('outlined dense clearable debounce=500 stack-label placeholder="the last"')
        field.style("width: 11rem").on_value_change(choose)

    async def _choose(self, field: str, value: Any) -> None:
        if isinstance(value, list):
            value = tuple(value)[:_MOST_COMPARED]
        setattr(self._choice, field, value)
        self._remember()
        if field == "others":
            await self.read()
        await self.draw()


_MOST_COMPARED = 8
_SMOOTHINGS = (0.0, 0.3, 0.6, 0.9)

# The title of each figure, and the options that it uses.
_FIGURES: Mapping[str, tuple[str, Sequence[str]]] = {
    "history": ("History", ("metric", "stopped", "log", "show_all")),
    "curves": ("Intermediate results", ("metric", "smoothing", "log", "show_all")),
    "parallel": ("Parallel coordinates", ("metric", "parameters", "stopped")),
    "importance": ("Importance", ("metric", "stopped")),
    "slice": ("Slice", ("metric", "parameters", "stopped", "log", "show_all", "columns")),
    "contour": ("Contour", ("metric", "x", "y", "stopped", "show_all")),
    "timeline": ("Timeline", ()),
    "schedule": ("Schedules", ("parameters",)),
    "pareto": ("Pareto front", ("show_all", "columns")),
    "edf": ("Compare experiments", ("objective", "others")),
}


@dataclass(slots=True, kw_only=True)
class Choice:
    """The figure and its options; options that this figure does not use are kept for the others.

    The `objective` may be another metric that trials report, for the figures that take a `metric`.
    """

    figure: str
    objective: str | None = None
    x: str = ""
    y: str = ""
    parameters: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    scale: str = "automatic"
    show_all: bool = False
    smoothing: float = 0.0
    stopped: bool = True
    step: int | None = None
    columns: int = 4

    @classmethod
    def parse(cls, asked: Mapping[str, str]) -> Choice:
        """Read the query of an address, without what makes no sense.

        >>> Choice.parse({"figure": "slice", "parameters": "lr,units", "log": "true"}).parameters
        ('lr', 'units')
        """
        figure = asked.get("figure", "")
        smoothing, step = asked.get("smoothing", ""), asked.get("step", "")
        return cls(
            figure=figure if figure in _FIGURES else "history",
            objective=asked.get("objective") or None,
            x=asked.get("x", ""),
            y=asked.get("y", ""),
            parameters=_words(asked.get("parameters", "")),
            others=_words(asked.get("others", ""))[:_MOST_COMPARED],
            scale={"true": "logarithmic", "false": "linear"}.get(asked.get("log", ""), "automatic"),
            show_all=asked.get("show_all") == "true",
            smoothing=float(smoothing) if smoothing in map(str, _SMOOTHINGS) else 0.0,
            stopped=asked.get("stopped") != "false",
            step=int(step) if re.fullmatch("[1-9][0-9]{0,14}", step) else None,
        )

    def query(self) -> dict[str, str]:
        """Return the choices for the address, which leaves out those that are empty."""
        return {
            "parameters": ",".join(self.parameters),
            "others": ",".join(self.others),
            "figure": self.figure,
            "objective": self.objective or "",
            "x": self.x,
            "y": self.y,
            "log": {"logarithmic": "true", "linear": "false"}.get(self.scale, ""),
            "show_all": "true" if self.show_all else "",
            "smoothing": str(self.smoothing) if self.smoothing else "",
            "stopped": "" if self.stopped else "false",
            "step": "" if self.step is None else str(self.step),
        }

    def known_in(self, table: ExperimentTable) -> Choice:
        """Return the choices without names that the experiment does not have."""
        names = [dimension.name for dimension in table.dimensions]
        return replace(
            self,
            objective=self.objective if self.objective in _metrics_of(table) else None,
            parameters=tuple(name for name in self.parameters if name in names),
            x=self.x if self.x in names else "",
            y=self.y if self.y in names else "",
        )

    def takes(self, name: str) -> bool:
        """Return whether the figure uses the option of this name."""
        return name in _FIGURES[self.figure][1]


def _metrics_of(table: ExperimentTable) -> list[str]:
    """Return the names of all that trials report: what is optimised, what is limited, and the rest."""
    named = dict.fromkeys(one.name for one in [*table.objectives, *table.limits])
    return [*named, *table.metrics]


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _draw(choice: Choice, table: ExperimentTable, others: Sequence[ExperimentTable]) -> go.Figure:
    """Draw the chosen figure of an experiment; `others` are experiments to compare it with.

    >>> _draw(Choice(figure="pareto"), figures.example_table(), ()).data[1].name
    'on the front'
    """
    if choice.figure == "contour":
        return _contour(choice, table)
    if choice.figure == "edf":
        goals = [objective.name for objective in table.objectives]
        return figures.plot_edf([table, *others], choice.objective if choice.objective in goals else None)
    of_metric = (choice.objective,) if choice.takes("metric") and choice.figure != "curves" else ()
    given = {
        "stopped": choice.stopped,
        "parameters": choice.parameters or None,
        "log": _SCALES[choice.scale],
        "show_all": choice.show_all,
        "smoothing": choice.smoothing,
        "columns": choice.columns,
    }
    options = {name: value for name, value in given.items() if choice.takes(name)}
    return getattr(figures, f"plot_{choice.figure}")(table, *of_metric, **options)


def _contour(choice: Choice, table: ExperimentTable) -> go.Figure:
    if not choice.x or choice.x == choice.y:
        return figures.nothing("light", "Contour", "Choose two different parameters.")
    return figures.plot_contour(
        table, choice.x, choice.y, choice.objective, stopped=choice.stopped, show_all=choice.show_all
    )
