"""The first page: the list of experiments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from nicegui import html, ui

from ...store import Annotations, StoreError
from ...store.reading import ExperimentView, Goal
from ...telling import (
    best_result_text,
    counts_text,
    duration_text,
    escaped,
    moment_text,
    number_text,
    standing_text,
    visible,
)
from ..experiments import Experiments, ServedExperiment
from .actions import show_refusal
from .comparison_page import MOST_COMPARED
from .elements import Place, action, attributed, badge, scripted, table
from .frame import ROOT, Where, page_frame, tone_of

_PERIOD = 2.0
_HEADS = ("", "Experiment", "Status", "Trials", "Best", "Progress", "Began", "Run time")
_UNREADABLE = "UNREADABLE"
_NEWEST = "newest"
# What the list can be filtered by: statuses that mean the same to users are one.
_STATUSES: Mapping[str, Sequence[str]] = {
    "running": ("INITIALIZED", "RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL", "STOPPING"),
    "done": ("DONE",),
    "stopped": ("STOPPED",),
    "failed": ("ERROR", _UNREADABLE),
    "manager gone": ("ABANDONED",),
    "viewed": ("VIEWED",),
}


async def experiments_page(experiments: Experiments, chosen: ListView) -> None:
    """Show all experiments as they were chosen, by default the newest first, and keep the list up to date."""
    rows = await asyncio.to_thread(_read, experiments)
    with page_frame("Experiments"), html.section().classes("pp-panel"):
        with html.div().classes("pp-row pp-spread"):
            html.h1("Experiments")
            _directory(experiments)
        listing = _Listing(chosen)
        listing.show(rows)

    async def refresh() -> None:
        listing.show(await asyncio.to_thread(_read, experiments))

    ui.timer(_PERIOD, refresh, immediate=False)


def _directory(experiments: Experiments) -> None:
    """Say what is listed: the experiments of a directory, or the only one that the server shows."""
    if experiments.only is None:
        html.span(str(experiments.directory)).classes("pp-dim pp-mono")
        return
    with html.span().classes("pp-dim"):
        html.span("only ")
        html.span(str(experiments.directory / experiments.only)).classes("pp-mono")
        html.span("; `pitchpipe ui` shows all")


@dataclass(slots=True)
class ListView:
    """What the address of the page says about the list: a search, statuses, and an order."""

    search: str = ""
    statuses: Sequence[str] = ()
    sort: str = _NEWEST

    @classmethod
    def parse(cls, search: str, status: str, sort: str) -> ListView:
        """Read the query of an address, without what makes no sense.

        >>> ListView.parse("mnist", "done,lost", "-trials")
        ListView(search='mnist', statuses=['done'], sort='newest')
        """
        statuses = [word for word in status.split(",") if word in _STATUSES]
        return cls(search, statuses, sort if sort in _ORDERS else _NEWEST)

    def takes(self, row: _Row) -> bool:
        """Return whether an experiment is shown."""
        known = [status for word in self.statuses for status in _STATUSES[word]]
        text = f"{row.name} {row.id} {row.status} {row.tags} {row.goal}".lower()
        return self.search.strip().lower() in text and (not known or (row.group or row.status) in known)

    def ordered(self, rows: Sequence[_Row]) -> list[_Row]:
        """Return the experiments that are shown, in the chosen order."""
        _, key = _ORDERS[self.sort]
        return sorted(filter(self.takes, rows), key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """An experiment in the list, as texts; if it cannot be read, `trials` is the reason."""

    id: str
    name: str = ""
    created: float = 0.0
    status: str
    tone: str = ""
    group: str = ""  # the status by which it is filtered, if that is another
    tags: Sequence[str] = ()
    trials: str
    count: int = 0
    best: str = ""
    goal: str = ""
    sparkline: Mapping[str, str] = field(default_factory=dict[str, str])
    began: str = ""
    ran: str = ""
    run_time: float = field(default=0.0, compare=False)  # what has not changed to look at is not drawn again


# The word in the address, what the field says, and the key.
_ORDERS: Mapping[str, tuple[str, Callable[[_Row], Any]]] = {
    _NEWEST: ("newest first", lambda row: -row.created),
    "name": ("name", lambda row: ((row.name or row.id).lower(), -row.created)),
    "status": ("status", lambda row: (row.status, -row.created)),
    "goal": ("metric", lambda row: (row.goal, -row.created)),
    "trials": ("most trials", lambda row: -row.count),
    "time": ("longest run time", lambda row: -row.run_time),
}


class _Listing:
    """The table; it is rebuilt only when something in it has changed."""

    def __init__(self, view: ListView) -> None:
        self._view = view
        self._chosen: list[str] = []
        with html.div().classes("pp-row pp-tools").style("margin: .5rem 0"):
            search = ui.input("Search", value=view.search, on_change=lambda event: self._search(event.value))
            search.props("outlined dense clearable type=search").classes("pp-search")
            statuses = ui.select(list(_STATUSES), multiple=True, label="Status", value=list(view.statuses))
            statuses.props("outlined dense clearable options-dense use-chips").style("min-width: 9rem")
            statuses.on_value_change(lambda event: self._filter(event.value))
            orders = {name: words for name, (words, _) in _ORDERS.items()}
            order = ui.select(orders, label="Order", value=view.sort).props("outlined dense options-dense")
            order.style("min-width: 10rem").on_value_change(lambda event: self._sort(event.value))
            self._compare = action("Compare", self._open_comparison, icon="compare_arrows")
            self._compare.disable()
        self._place = Place(html.div().classes("pp-cards"))
        self._none = html.p("There are no experiments here yet. To start one: pitchpipe run experiment.yml")
        self._no_match = html.p("No experiment matches.").classes("pp-dim")
        self._rows: list[_Row] = []

    def show(self, rows: list[_Row]) -> None:
        """Show these experiments."""
        self._rows = rows
        self._none.set_visibility(not rows)
        has_tags = any(row.tags for row in rows)
        shown = self._view.ordered(rows)
        self._no_match.set_visibility(bool(rows) and not shown)

        def draw() -> None:
            if shown:
                with table((*_HEADS, *(["Tags"] if has_tags else [])), "Experiments"):
                    for row in shown:
                        self._add(row, has_tags=has_tags)

        self._place.show((shown, has_tags), draw)

    def _search(self, text: str | None) -> None:
        self._view.search = text or ""
        self._show_again(search=self._view.search)

    def _filter(self, statuses: list[str] | None) -> None:
        self._view.statuses = list(statuses or ())
        self._show_again(status=",".join(self._view.statuses))

    def _sort(self, order: str) -> None:
        self._view.sort = order
        self._show_again(sort="" if order == _NEWEST else order)

    def _show_again(self, **choices: str) -> None:
        ui.run_javascript(scripted("pitchpipe.remember(CHOICES)", CHOICES=choices))
        self.show(self._rows)

    def _choose(self, name: str, is_chosen: bool) -> None:
        others = [other for other in self._chosen if other != name]
        self._chosen = [*others, name] if is_chosen else others
        self._compare.set_enabled(len(self._chosen) > 1)

    def _open_comparison(self) -> None:
        if (count := len(self._chosen)) > MOST_COMPARED:
            show_refusal(f"{count} experiments are too many to compare: select at most {MOST_COMPARED}")
            return
        first, *others = self._chosen
        address = Where(first).path("against", others=",".join(others))
        ui.navigate.to(address.removeprefix(ROOT))  # navigation adds the root itself

    def _add(self, row: _Row, *, has_tags: bool) -> None:
        with html.tr():
            with html.td():
                box = ui.checkbox(value=row.id in self._chosen).props("dense")
                attributed(box, aria_label=f"Select {visible(row.id)}")
                box.on_value_change(lambda event: self._choose(row.id, bool(event.value)))
            with html.td():
                html.a(visible(row.name or row.id), href=Where(row.id).path())
                if row.name and row.name != row.id:
                    html.div(visible(row.id)).classes("pp-dim pp-mono")
            with html.td():
                badge(row.status, row.tone)
            html.td(escaped(row.trials))
            with html.td():
                html.div(escaped(row.best)).classes("pp-mono pp-best" if row.best else "")
                html.div(escaped(row.goal)).classes("pp-dim")
            with html.td():
                _draw_sparkline(row.sparkline)
            html.td(row.began)
            html.td(row.ran)
            if has_tags:
                with html.td(), html.div().classes("pp-row"):
                    for tag in row.tags:
                        badge(visible(tag))


def _read(experiments: Experiments) -> list[_Row]:
    """Read what the list shows of each experiment."""
    rows = []
    for experiment in experiments.all():
        try:
            rows.append(_row(experiment))
        except StoreError as error:
            rows.append(_Row(id=experiment.view.experiment_id, status=_UNREADABLE, trials=str(error)))
    return rows


def _row(experiment: ServedExperiment) -> _Row:
    view, summary = experiment.view, experiment.view.summary()
    total = summary.limits.get("max_trial_number")
    of = f" of {total}" if total is not None else ""
    return _Row(
        id=summary.id,
        name=summary.name or "",
        created=summary.created,
        status=standing_text(summary),
        tone=tone_of(summary),
        group="ABANDONED" if summary.is_abandoned else summary.status,
        tags=Annotations(view.folder).read(None).tags,
        trials=": ".join(filter(None, (f"{summary.trials}{of}", counts_text(summary.counts)))),
        count=summary.trials,
        goal=_goal_text(summary.objectives),
        best=best_result_text(view.best_result(), len(summary.best)),
        sparkline=experiment.cached(_progress),
        began=moment_text(summary.created),
        ran=duration_text(summary.run_time),
        run_time=summary.run_time,
    )


def _goal_text(goals: Sequence[Goal]) -> str:
    """Return what is optimised, and in which direction.

    >>> _goal_text([Goal("default", "minimize")]), _goal_text([Goal("acc", "maximize"), Goal("ms", "minimize")])
    ('minimize', 'maximize acc, minimize ms')
    """
    return ", ".join(
        f"{goal.direction} {'' if goal.name == 'default' else goal.name}".rstrip() for goal in goals
    )


def _progress(view: ExperimentView) -> dict[str, str]:
    return sparkline([entry.best for entry in view.history()])


_MOST_STEPS = 100
_WIDTH, _HEIGHT = 100, 20


def sparkline(best: Sequence[float | None]) -> dict[str, str]:
    """Return the line of the best result after each trial, as a path, and what it says; empty before there are two.

    >>> sparkline([None, 3.0, 2.0, 2.0])
    {'says': 'Best result over 3 trials: 3 to 2', 'path': 'M0 0H50V20H100V20'}
    """
    values = [value for value in best if value is not None and isfinite(value)]
    if len(values) < 2:
        return {}
    low, high = min(values) / 2, max(values) / 2  # halves: the difference of two floats may be infinite
    span = high - low

    def height(place: int) -> str:
        return f"{_HEIGHT * ((high - values[place] / 2) / span if span else 0.5):.4g}"

    steps = "".join(
        f"H{_WIDTH * place / (len(values) - 1):.4g}V{height(place)}" for place in _corners(values)[1:]
    )
    says = f"Best result over {len(values)} trials: {number_text(values[0])} to {number_text(values[-1])}"
    return {"says": says, "path": f"M0 {height(0)}{steps}"}


def _draw_sparkline(line: Mapping[str, str]) -> None:
    """Draw what `sparkline` returned."""
    if not line:
        return
    box = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "preserveAspectRatio": "none"}
    with attributed(ui.element("svg"), role="img", aria_label=line["says"], **box).classes("pp-sparkline"):
        attributed(ui.element("path"), d=line["path"])


def _corners(values: Sequence[float]) -> list[int]:
    """Return the places where the values change, thinned out, with both ends."""
    changes = [place for place in range(1, len(values)) if values[place] != values[place - 1]]
    thin = max(1, -(-len(changes) // _MOST_STEPS))
    return sorted({0, *changes[::-thin], len(values) - 1})
