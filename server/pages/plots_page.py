"""The page with the figures of an experiment, one at a time, each with its options, kept up to date while it runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any

from nicegui import html, ui

from ...protocol import counted
from ...store import StoreError
from ...store.reading import Condition, ExperimentView, FeedEvent, TrialQuery, spelled_field
from ...telling import escaped, visible
from .. import figures
from ..experiment_table import read_table
from ..experiments import Experiments
from ..figures import Dimension, ExperimentTable, existing_together, objectives_in_order
from .actions import show_refusal
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
        self._show_controls()
        is_narrow = await ui.run_javascript("innerWidth", timeout=_PATIENCE) < _WIDE
        self._choice.columns = 1 if is_narrow else 4
        await self.draw()

    async def read(self) -> None:
        """Read the experiment, and those it is compared with."""
        self._table = await asyncio.to_thread(read_table, self._view, attempts=True, schedules=True)
        names = [name for name in self._choice.others if name != self._view.experiment_id]
        self._others = []
        for name in names:
            try:
                other = self._experiments.view(name)
                self._others.append(await asyncio.to_thread(read_table, other, curves=0))
            except (LookupError, StoreError) as error:
                show_refusal(str(error))

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
        figure = await asyncio.to_thread(_draw, choice, self._table, self._others)
        if choice == self._choice:  # the choice has not changed meanwhile
            figure.update_layout(uirevision=json.dumps(choice.query()))
            self._figure.show(figure)
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
            html.strong(counted(total, "trial"))
            html.a("Show them in the table", href=address)
            html.code(escaped(where)).classes("pp-dim")

    def _show_controls(self) -> None:
        """Show the options of the figure."""
        table = self._table
        self._controls.clear()
        self._brush.clear()
        if table is None:
            return
        names = [dimension.name for dimension in table.dimensions]
        goals = [objective.name for objective in table.objectives]
        with self._controls:
            if len(goals) > 1 and self._choice.takes("objective"):
                self._choice.objective = self._choice.objective or goals[0]
                self._select("objective", "Objective", goals)
            if self._choice.takes("x") and len(names) > 1:
                first, second = existing_together(table.dimensions)
                self._choice.x = self._choice.x or first.name
                self._choice.y = self._choice.y or second.name
                self._select("x", "Across", names)
                self._select("y", "Up", names)
            if self._choice.takes("parameters"):
                self._select("parameters", "All parameters", names, multiple=True)
            if self._choice.takes("log"):
                self._select("scale", "Scale of the results", list(_SCALES))
            if self._choice.takes("smoothing"):
                self._select("smoothing", "Smoothing", list(_SMOOTHINGS))
            if self._choice.takes("show_all"):
                box = ui.checkbox("Show all, however bad", value=self._choice.show_all)
                box.on_value_change(lambda event: self._choose("show_all", bool(event.value)))
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
    "history": ("History", ("objective", "log", "show_all")),
    "curves": ("Intermediate results", ("smoothing", "log", "show_all")),
    "parallel": ("Parallel coordinates", ("objective", "parameters")),
    "importance": ("Importance", ("objective",)),
    "slice": ("Slice", ("objective", "parameters", "log", "show_all", "columns")),
    "contour": ("Contour", ("objective", "x", "y")),
    "timeline": ("Timeline", ()),
    "schedule": ("Schedules", ("parameters",)),
    "pareto": ("Pareto front", ("show_all", "columns")),
    "edf": ("Compare experiments", ("objective", "others")),
}


@dataclass(slots=True, kw_only=True)
class Choice:
    """The figure and its options; options that this figure does not use are kept for the others."""

    figure: str
    objective: str | None = None
    x: str = ""
    y: str = ""
    parameters: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    scale: str = "automatic"
    show_all: bool = False
    smoothing: float = 0.0
    columns: int = 4

    @classmethod
    def parse(cls, asked: Mapping[str, str]) -> Choice:
        """Read the query of an address, without what makes no sense.

        >>> Choice.parse({"figure": "slice", "parameters": "lr,units", "log": "true"}).parameters
        ('lr', 'units')
        """
        figure = asked.get("figure", "")
        smoothing = asked.get("smoothing", "")
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
        }

    def known_in(self, table: ExperimentTable) -> Choice:
        """Return the choices without names that the experiment does not have."""
        names = [dimension.name for dimension in table.dimensions]
        goals = [objective.name for objective in table.objectives]
        return replace(
            self,
            objective=self.objective if self.objective in goals else None,
            parameters=tuple(name for name in self.parameters if name in names),
            x=self.x if self.x in names else "",
            y=self.y if self.y in names else "",
        )

    def takes(self, name: str) -> bool:
        """Return whether the figure uses the option of this name."""
        return name in _FIGURES[self.figure][1]


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
        return figures.plot_edf([table, *others], choice.objective)
    given = {
        "objective": choice.objective,
        "parameters": choice.parameters or None,
        "log": _SCALES[choice.scale],
        "show_all": choice.show_all,
        "smoothing": choice.smoothing,
        "columns": choice.columns,
    }
    options = {name: value for name, value in given.items() if choice.takes(name)}
    return getattr(figures, f"plot_{choice.figure}")(table, **options)


def _contour(choice: Choice, table: ExperimentTable) -> go.Figure:
    if not choice.x or choice.x == choice.y:
        return figures.nothing("light", "Contour", "Choose two different parameters.")
    return figures.plot_contour(table, choice.x, choice.y, choice.objective)


_LAST_POWER = 308.0  # of ten among floats


def brushed(
    table: ExperimentTable,
    ranges: Sequence[Sequence[float] | None],
    objective: str | None = None,
    parameters: Sequence[str] | None = None,
) -> str:
    """Return the condition for the trials within the ranges brushed on parallel coordinates, as the table takes it.

    There is a range, or None, for each axis of `plot_parallel`. A trial without a brushed parameter does not match.

    >>> from pitchpipe.server.figures import example_table
    >>> brushed(example_table(), [(-3.0, -2.0), None, None], "loss", ["lr"])
    'parameters.lr >= 0.001 and parameters.lr <= 0.01'
    """
    chosen = table.chosen(parameters)
    conditions: list[str] = []
    for dimension, range_ in zip(chosen, ranges, strict=False):
        if range_ is not None and dimension.categorical:
            conditions += _of_options(dimension, range_, table)
        elif range_ is not None:
            conditions += _of_numbers(dimension, range_)
    objectives = objectives_in_order(table, table.objective(objective))
    for goal, range_ in zip(objectives, ranges[len(chosen) :], strict=False):
        if range_ is not None:
            conditions += _between(f"value.{goal.name}", *range_)
    return " and ".join(conditions)


def _between(field: str, low: float, high: float) -> list[str]:
    field = spelled_field(field)
    return [f"{field} >= {low:.6g}", f"{field} <= {high:.6g}"]


def _of_numbers(dimension: Dimension, range_: Sequence[float]) -> list[str]:
    low, high = (10.0 ** min(end, _LAST_POWER) if dimension.log else end for end in range_)
    return _between(dimension.field, low, high)


def _of_options(dimension: Dimension, range_: Sequence[float], table: ExperimentTable) -> Iterator[str]:
    """Yield a condition for the only option in the range, or one for each outside; and that there is a value."""
    low, high = range_
    field = spelled_field(dimension.field)
    inside = [option for place, option in enumerate(dimension.options) if low <= place <= high]
    if len(inside) == 1:
        yield f"{field} = {_raw(dimension, inside[0], table)}"
        return
    outside = [option for option in dimension.options if option not in inside]
    yield from (f"{field} != {_raw(dimension, option, table)}" for option in outside)
    if dimension.conditions and outside and "null" not in dimension.options:
        yield f"{field} != null"  # != alone finds the trials that do not have it


def _raw(dimension: Dimension, option: str, table: ExperimentTable) -> str:
    """Return an option as JSON, as the trials have it; its label if no trial has it."""
    for trial in table.trials:
        if dimension.value(trial.parameters) == option:
            return json.dumps(reduce(getitem, dimension.path, trial.parameters))
    return json.dumps(option)
