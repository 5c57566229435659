"""The page with the table of trials: the store sorts and filters, and rows are fetched as they scroll into view."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nicegui import html, ui

from ...protocol import Config, JsonObject, counted
from ...store.reading import (
    Condition,
    ExperimentView,
    FeedEvent,
    FieldNames,
    Goal,
    QueryError,
    Summary,
    TrialQuery,
)
from ...telling import STATUS_WORDS, nouns, status_text, visible
from ..experiments import Experiments
from .actions import show_refusal
from .elements import action, scripted
from .frame import Where, experiment_frame
from .grid_columns import Column, columns_of, metric_column, of_families, reported_columns
from .table_view import TableView
from .trial_actions import TrialActions

_BLOCK = 100
_NAMES_EVERY = 5.0  # seconds between two looks for metrics that are new


async def trials_page(experiments: Experiments, experiment_id: str, chosen: TableView) -> None:
    """Show the trials as they were chosen, by default the best first."""
    async with experiment_frame(experiments, experiment_id, "Trials", "trials") as (view, where, live):
        known = await asyncio.to_thread(_Known.read, view, chosen.where)
        chosen.families = known.has_repeats and (
            chosen.suits_families if chosen.families is None else chosen.families
        )
        html.h1("Trials").classes("pp-hidden")
        actions = TrialActions(view, where, lambda: table.selected())
        table = _Table(view, where, known, chosen, actions)
        actions.show_state(known.summary)

        async def refresh(events: list[FeedEvent]) -> None:
            summary = await asyncio.to_thread(view.summary)
            where.show_status(summary)
            actions.show_state(summary)
            if not events or any(event.kind in ("trial", "results") for event in events):
                table.refresh()
                await actions.follow()

        live.on_change(refresh)
        live.on_tick(table.look_for_metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is read before the table is made; `problem` is what is wrong with the condition of the address."""

    config: Config
    metrics: Sequence[str]
    summary: Summary
    names: FieldNames
    has_repeats: bool
    problem: str

    @classmethod
    def read(cls, view: ExperimentView, where: str) -> _Known:
        return cls(
            config=view.config(),
            metrics=view.metric_names(),
            summary=view.summary(),
            names=view.names(),
            has_repeats=view.repeats() > 1,
            problem=_problem_of(view, where),
        )

    def columns(self, chosen: TableView) -> list[Column]:
        """Return the columns, those of chosen metrics included."""
        columns = columns_of(
            self.config,
            self.metrics,
            {goal.name: goal.direction for goal in self.summary.objectives},
            empty=_empty(self.summary),
            reported=reported_columns(self.names, chosen.columns),
        )
        return of_families(columns) if chosen.families else columns


def _empty(summary: Summary) -> list[str]:
    """Return the columns without a value: no trial has, or soon may have, a last result alone, or a reason.

    The reason names the limits that a result violates, too.
    """
    if summary.is_running:
        return []
    ends = set(summary.counts) - {"SUCCEEDED"}
    has_reasons = ends or summary.outcome_limits
    return [*(["last"] if ends <= {"FAILED"} else []), *([] if has_reasons else ["reason"])]


def _usual_order(goals: Sequence[Goal], limits: Mapping[str, str]) -> str:
    """Return the order that shows the best first; empty where a front or limits decide, which the store knows.

    >>> both = [Goal("loss", "minimize"), Goal("ms", "minimize")]
    >>> _usual_order(both[:1], {}), _usual_order(both, {})
    ('value.loss', '')
    """
    first, *others = goals
    if limits or others:
        return ""
    return f"{'-' if first.direction == 'maximize' else ''}value.{first.name}"


# The columns that tell why a trial failed, and where they are moved.
_WHY = ("kind", "reason")
_AFTER_STATUS = 3
_FETCH = (
    "ask => fetch(ADDRESS + new URLSearchParams({start: ask.startRow, end: ask.endRow,"
    " sort: JSON.stringify(ask.sortModel), filter: JSON.stringify(ask.filterModel)}))"
    ".then(response => response.json()).then(found => {"
    " if (found.error) throw new Error(found.error);"
    " ask.successCallback(found.rows, found.total);"
    " emitEvent('rows_counted', [found.total, Object.keys(ask.filterModel).length > 0]) })"
    ".catch(error => { ask.failCallback(); emitEvent('rows_refused', error.message) })"
)


class _Table:
    """The grid with its tools."""

    def __init__(
        self, view: ExperimentView, where: Where, known: _Known, chosen: TableView, actions: TrialActions
    ) -> None:
        self._view = view
        self._where = where
        self._known = known
        self._chosen = chosen
        self._columns = known.columns(chosen)
        self._usual_order = _usual_order(known.summary.objectives, known.summary.outcome_limits)
        self._condition = "" if known.problem else chosen.where  # the last valid one
        self._fetched = [
            column.metric for column in self._columns if column.metric and self._is_shown(column)
        ]
        self._names_read = time.monotonic()
        self._is_stale = False
        self._fields: list[Any] = []
        with html.div().classes("pp-row pp-tools").props('role=toolbar aria-label="Tools of the table"'):
            if not chosen.families:
                self._search_field()
                self._where_field()
            self._status_field()
            self._column_menu()
            if known.has_repeats:
                self._family_switch()
            self._count = ui.label().classes("pp-dim").props("role=status").mark("trial-count")
            html.span().style("flex: 1")
            actions.toolbar(can_kill=not chosen.families)
        with html.section().classes("pp-panel pp-empty") as self._none:
            self._why_none = ui.label()
            self._clear_button = action("Clear the filters", self._clear, kind="outline")
        self._none.set_visibility(False)
        with html.div() as self._place:  # changing the classes of the grid itself would rebuild it
            self._grid = ui.aggrid(self._options(), html_columns=[0], auto_size_columns=False)
        self._grid.classes("pp-grid").props('aria-label="Trials"')
        self._grid.on("selectionChanged", actions.show_selected, args=[])
        ui.on("rows_counted", lambda event: self._show_count(*event.args))
        ui.on("rows_refused", lambda event: self._show_refusal(str(event.args)))

    def refresh(self) -> None:
        """Fetch the visible rows again; selection and scroll position stay."""
        self._is_stale = True
        self._grid.run_grid_method("refreshInfiniteCache")

    async def look_for_metrics(self) -> None:
        """Add the columns of metrics that trials have begun to report since the page was made."""
        if not self._is_stale or time.monotonic() < self._names_read + _NAMES_EVERY:
            return
        self._is_stale, self._names_read = False, time.monotonic()
        names = await asyncio.to_thread(self._view.names)
        there = {column.metric for column in self._columns}
        new = [column for column in reported_columns(names) if column.metric not in there]
        self._add([replace(column, hidden=True) if self._chosen.columns else column for column in new])

    def _add(self, columns: Sequence[Column]) -> None:
        """Add columns of metrics after those that are there, and fetch what they show."""
        columns = of_families(columns) if self._chosen.families else columns
        if not columns:
            return
        place = 1 + max(n for n, column in enumerate(self._columns) if _is_up_to_metrics(column))
        after = self._columns[place - 1].field
        self._columns[place:place] = columns
        for column in columns:
            self._column_box(column, is_shown=not column.hidden)
        definitions = [column.definition for column in columns]
        ui.run_javascript(
            scripted(
                "pitchpipe.addColumns(getElement(GRID).api, DEFINITIONS, AFTER)",
                GRID=self._grid.id,
                DEFINITIONS=definitions,
                AFTER=after,
            )
        )
        self._fetch_metrics([column.metric for column in columns if column.metric and not column.hidden])

    def _fetch_metrics(self, metrics: Sequence[str]) -> None:
        """Fetch rows with these metrics as well."""
        new = [name for name in metrics if name not in self._fetched]
        if new:
            self._fetched += new
            self._grid.run_grid_method("setGridOption", "datasource", self._source())

    async def selected(self) -> list[int]:
        """Return the numbers of the selected trials, in the order in which they were selected."""
        rows = await self._grid.get_selected_rows()
        return [row["number"] for row in rows or () if row]

    def _show_count(self, total: int, is_filtered: bool) -> None:
        """Show how many trials match; `is_filtered` says whether columns have filters."""
        is_filtered = is_filtered or self._chosen.is_filtered
        self._count.set_text(counted(total, *nouns(2 if self._chosen.families else 1)))
        self._why_none.set_text("No trial matches." if is_filtered else "No trial has started yet.")
        self._clear_button.set_visibility(is_filtered)
        self._none.set_visibility(not total)
        self._place.set_visibility(bool(total))

    def _show_refusal(self, why: str) -> None:
        self._count.set_text("")
        self._why_none.set_text(why)
        self._clear_button.set_visibility(True)
        self._none.set_visibility(True)
        self._place.set_visibility(False)

    def _clear(self) -> None:
        self._grid.run_grid_method("setFilterModel", None)
        for control in self._fields:
            control.set_value([] if isinstance(control.value, list) else "")

    def _search_field(self) -> None:
        field = ui.input(
            "Search", value=self._chosen.search, on_change=lambda event: self._search(event.value)
        )
        field.props("outlined dense clearable debounce=100 type=search").classes("pp-search").style(
            "flex: 1 1 12rem; max-width: 28rem"
        )
        field.tooltip("Text in parameters, reasons and errors, or the number or id of a trial (key /)")
        self._fields.append(field)

    def _search(self, text: str | None) -> None:
        self._chosen.search = (text or "").strip()
        self._fetch_again(search=self._chosen.search)

    def _where_field(self) -> None:
        field = ui.input(
            "Filter", value=self._chosen.where, on_change=lambda event: self._filter(event.value)
        )
        field.props("outlined dense clearable debounce=300 autocomplete=off spellcheck=false")
        field.props('placeholder="lr < 0.1 and status = FAILED" hide-bottom-space')
        field.classes("pp-mono").style("flex: 2 1 16rem; max-width: 28rem")
        field.tooltip("Conditions as pitchpipe trials --where takes them, joined by and")
        field.error = self._known.problem or None
        self._fields.append(field)
        self._where_input = field

    async def _filter(self, text: str | None) -> None:
        where = (text or "").strip()
        problem = await asyncio.to_thread(_problem_of, self._view, where)
        if where != (self._where_input.value or "").strip():
            return  # more was typed meanwhile
        self._where_input.error = problem or None
        if not problem:
            self._chosen.where = self._condition = where
            self._fetch_again(where=where)

    def _status_field(self) -> None:
        options = {status: status_text(status) for status in STATUS_WORDS}
        chosen = ui.select(options, multiple=True, label="Status", value=self._chosen.statuses)
        chosen.props("outlined dense clearable options-dense use-chips").style("min-width: 9rem")
        chosen.on_value_change(lambda event: self._choose(event.value))
        self._fields.append(chosen)

    def _choose(self, statuses: list[str] | None) -> None:
        self._chosen.statuses = list(statuses or ())
        if self._chosen.statuses == ["FAILED"]:
            self._grid.run_grid_method("setColumnsVisible", list(_WHY), True)
            self._grid.run_grid_method("moveColumns", list(_WHY), _AFTER_STATUS)
        self._fetch_again(status=",".join(self._chosen.statuses))

    def _column_menu(self) -> None:
        with action("Columns", lambda: None, icon="view_column"), ui.menu():
            if self._known.names.metrics or self._known.summary.is_running:
                self._metric_field()
            self._boxes = ui.column().style("padding: .6rem 1rem; gap: 0")
        for column in self._columns[1:]:
            self._column_box(column, is_shown=self._is_shown(column))

    def _column_box(self, column: Column, *, is_shown: bool) -> None:
        with self._boxes:
            box = ui.checkbox(visible(column.head), value=is_shown).props("dense")
        box.on_value_change(lambda event: self._show_column(column, bool(event.value)))

    def _show_column(self, column: Column, is_shown: bool) -> None:
        self._grid.run_grid_method("setColumnsVisible", [column.field], is_shown)
        if column.metric and is_shown:
            self._fetch_metrics([column.metric])

    def _metric_field(self) -> None:
        """Make the field that adds the column of a metric: of very many, not all are in the menu."""
        field = ui.input("A metric, by name").props("outlined dense autocomplete=off spellcheck=false")
        field.style("margin: .8rem 1rem 0")
        field.on("keydown.enter", lambda: self._show_metric(field))

    async def _show_metric(self, field: ui.input) -> None:
        try:
            found = await asyncio.to_thread(self._view.field, field.value or "")
        except QueryError as error:
            show_refusal(str(error))
            return
        field.set_value("")
        there = next((column for column in self._columns if column.field == found), None)
        head, _, name = found.partition(".")
        if there is not None:
            self._show_column(there, True)
        elif head == "metrics":
            self._add([metric_column(name, await asyncio.to_thread(self._view.names))])
        else:
            show_refusal(f"{found} is not a metric that trials report")

    def _family_switch(self) -> None:
        switch = ui.switch("Families", value=self._chosen.families).props("dense")
        switch.tooltip("One row for each configuration, with the mean of its repeats")
        switch.on_value_change(lambda event: self._turn_to_families(bool(event.value)))

    def _turn_to_families(self, is_on: bool) -> None:
        ui.run_javascript(
            scripted(
                "pitchpipe.remember({families: FAMILIES, selected: ''}); location.reload()",
                FAMILIES="1" if is_on else "0",
            )
        )

    def _fetch_again(self, **choices: str) -> None:
        if self._chosen.families:  # which a filter turns off where the address does not ask for them
            choices["families"] = "1"
        ui.run_javascript(scripted("pitchpipe.remember(CHOICES)", CHOICES=choices))
        self._grid.run_grid_method("setGridOption", "datasource", self._source())

    def _source(self) -> JsonObject:
        """Return the data source for AG Grid: each block of rows is one request."""
        chosen, query = self._chosen, dict[str, str]()
        if chosen.families:
            query["families"] = "1"
        else:
            query |= {"search": chosen.search, "where": self._condition}
        query |= {"status": ",".join(chosen.statuses), "metrics": json.dumps(self._fetched)}
        address = self._where.path("rows", **query)
        return {":getRows": scripted(_FETCH, ADDRESS=f"{address}&")}

    def _definition(self, column: Column) -> JsonObject:
        definition = self._chosen.definition(column, "" if self._chosen.families else self._usual_order)
        is_why = column.field in _WHY and self._chosen.statuses == ["FAILED"] and not self._chosen.columns
        return {**definition, "hide": definition["hide"] and not is_why}

    def _is_shown(self, column: Column) -> bool:
        return not self._definition(column)["hide"]

    def _ordered(self) -> list[Column]:
        """Return the columns as chosen; those that tell why follow the status where only failed trials are shown."""
        columns = {column.field: column for column in self._columns}
        first = self._columns[0].field
        order = list(self._chosen.columns)
        if not order and self._chosen.statuses == ["FAILED"]:
            names = [name for name in columns if name not in _WHY]
            order = [*names[: names.index("status") + 1], *_WHY]
        return [columns[name] for name in dict.fromkeys([first, *order, *columns]) if name in columns]

    def _options(self) -> JsonObject:
        first, *others = map(self._definition, self._ordered())
        usual = [column.field for column in self._columns if not column.hidden]
        remember = "grid => pitchpipe.rememberGrid(grid.api)"
        return {
            "columnDefs": [{**first, "pinned": "left"}, *others],
            "defaultColDef": {"sortable": True, "resizable": True, "suppressHeaderMenuButton": False},
            "suppressFieldDotNotation": True,
            "context": {"usual": usual},
            "rowModelType": "infinite",
            "rowHeight": 30,
            "headerHeight": 36,
            "cacheBlockSize": _BLOCK,
            "maxBlocksInCache": 50,
            "infiniteInitialRowCount": 20,
            "datasource": self._source(),
            "initialState": {"filter": {"filterModel": self._chosen.filters_of(self._columns)}},
            ":getRowId": "row => String(row.data.number)",
            "rowSelection": {"mode": "multiRow", "checkboxes": True, "headerCheckbox": False},
            "selectionColumnDef": {"pinned": "left", "width": 38},
            ":onModelUpdated": scripted("pitchpipe.selecting(NUMBERS)", NUMBERS=list(self._chosen.selected)),
            ":onSelectionChanged": "grid => pitchpipe.rememberSelected(grid.api)",
            ":onSortChanged": remember,
            ":onFilterChanged": remember,
            ":onColumnVisible": remember,
            ":onRowDoubleClicked": "row => { if (row.data) location.href = row.data.address }",
            ":onCellKeyDown": "cell => { if (cell.event.key === 'Enter' && cell.data)"
            " location.href = cell.data.address }",
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
        }


def _is_up_to_metrics(column: Column) -> bool:
    is_before = column.field in ("status", "last") or column.field.startswith("value.") or column.path
    return bool(is_before) or column.metric is not None


def _problem_of(view: ExperimentView, where: str) -> str:
    """Return what is wrong with a condition; empty if it is valid."""
    try:
        view.check_query(TrialQuery(conditions=Condition.parse_all(where) if where.strip() else ()))
    except QueryError as error:
        return str(error)
    return ""
