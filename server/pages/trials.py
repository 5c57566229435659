"""The page with the table of trials: the store sorts and filters, and rows are fetched as they scroll into view."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nicegui import html, ui

from ...protocol import JsonObject, counted
from ...store.reading import Condition, FeedEvent, Goal, QueryError, Summary, TrialQuery
from ...telling import STATUS_WORDS, status_text, visible
from ..experiments import Experiments
from .elements import action, scripted
from .frame import Where, experiment_frame
from .trial_actions import TrialActions
from .trial_grid import Column, columns_of

_BLOCK = 100


async def trials_page(experiments: Experiments, experiment_id: str, chosen: TableView) -> None:
    """Show the trials as they were chosen, by default the best first."""
    async with experiment_frame(experiments, experiment_id, "Trials", "trials") as (view, where, live):
        config, metrics, summary = await asyncio.to_thread(
            lambda: (view.config(), view.metric_names(), view.summary())
        )
        html.h1("Trials").classes("pp-hidden")
        directions = {goal.name: goal.direction for goal in summary.objectives}
        columns = columns_of(config, metrics, directions, empty=_empty(summary))
        actions = TrialActions(view, where, lambda: table.selected())
        usual_order = _usual_order(summary.objectives, summary.outcome_limits)
        table = _Table(where, columns, chosen, usual_order, actions)
        actions.show_state(summary)

        async def refresh(events: list[FeedEvent]) -> None:
            summary = await asyncio.to_thread(view.summary)
            where.show_status(summary)
            actions.show_state(summary)
            if not events or any(event.kind in ("trial", "results") for event in events):
                table.refresh()

        live.on_change(refresh)


def _empty(summary: Summary) -> list[str]:
    """Return the columns without a value: no trial has, or soon may have, a last result alone, or a reason."""
    if summary.is_running:
        return []
    ends = set(summary.counts) - {"SUCCEEDED"}
    return [*(["last"] if ends <= {"FAILED"} else []), *([] if ends else ["reason"])]


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
        self,
        where: Where,
        columns: Sequence[Column],
        chosen: TableView,
        usual_order: str,
        actions: TrialActions,
    ) -> None:
        self._where = where
        self._columns = columns
        self._chosen = chosen
        self._usual_order = usual_order
        self._fields: list[Any] = []
        with html.div().classes("pp-row pp-tools").props('role=toolbar aria-label="Tools of the table"'):
            self._search_field()
            self._where_field()
            self._status_field()
            self._column_menu()
            self._count = ui.label().classes("pp-dim").props("role=status").mark("trial-count")
            html.span().style("flex: 1")
            actions.toolbar()
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
        self._grid.run_grid_method("refreshInfiniteCache")

    async def selected(self) -> list[int]:
        """Return the numbers of the selected trials, in the order in which they were selected."""
        rows = await self._grid.get_selected_rows()
        return [row["number"] for row in rows or () if row]

    def _show_count(self, total: int, is_filtered: bool) -> None:
        """Show how many trials match; `is_filtered` says whether columns have filters."""
        is_filtered = is_filtered or self._chosen.is_filtered
        self._count.set_text(counted(total, "trial"))
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
            "Filter",
            value=self._chosen.where,
            on_change=lambda event: self._filter(event.value),
            validation=lambda text: _problem_of(text or "") or None,
        )
        field.props("outlined dense clearable debounce=300 autocomplete=off spellcheck=false")
        field.props('placeholder="parameters.lr < 0.1 and status = FAILED" hide-bottom-space')
        field.classes("pp-mono").style("flex: 2 1 16rem; max-width: 28rem")
        field.tooltip("Conditions as pitchpipe trials --where takes them, joined by and")
        self._fields.append(field)
        field.validate()

    def _filter(self, text: str | None) -> None:
        where = (text or "").strip()
        if not _problem_of(where):
            self._chosen.where = where
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
        with (
            action("Columns", lambda: None, icon="view_column"),
            ui.menu(),
            ui.column().style("padding: .6rem 1rem; gap: 0"),
        ):
            for column in self._columns[1:]:
                hidden = self._definition(column)["hide"]
                box = ui.checkbox(visible(column.head), value=not hidden).props("dense")
                box.on_value_change(
                    lambda event, name=column.field: self._show_column(name, bool(event.value))
                )

    def _show_column(self, name: str, visible: bool) -> None:
        self._grid.run_grid_method("setColumnsVisible", [name], visible)

    def _fetch_again(self, **choices: str) -> None:
        ui.run_javascript(scripted("pitchpipe.remember(CHOICES)", CHOICES=choices))
        self._grid.run_grid_method("setGridOption", "datasource", self._source())

    def _source(self) -> JsonObject:
        """Return the data source for AG Grid: each block of rows is one request."""
        chosen = self._chosen
        where = "" if _problem_of(chosen.where) else chosen.where
        statuses = ",".join(chosen.statuses)
        address = self._where.path("rows", search=chosen.search, where=where, status=statuses)
        return {":getRows": scripted(_FETCH, ADDRESS=f"{address}&")}

    def _definition(self, column: Column) -> JsonObject:
        definition = self._chosen.definition(column, self._usual_order)
        is_why = column.field in _WHY and self._chosen.statuses == ["FAILED"] and not self._chosen.columns
        return {**definition, "hide": definition["hide"] and not is_why}

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
        remember = scripted("grid => pitchpipe.rememberGrid(grid.api, USUAL)", USUAL=usual)
        return {
            "columnDefs": [{**first, "pinned": "left"}, *others],
            "defaultColDef": {"sortable": True, "resizable": True, "suppressHeaderMenuButton": False},
            "suppressFieldDotNotation": True,
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
            ":onSortChanged": remember,
            ":onFilterChanged": remember,
            ":onColumnVisible": remember,
            ":onRowDoubleClicked": "row => { if (row.data) location.href = row.data.address }",
            ":onCellKeyDown": "cell => { if (cell.event.key === 'Enter' && cell.data)"
            " location.href = cell.data.address }",
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
        }


_FILTER_OPTIONS = ("filterType", "type", "filter", "filterTo")


@dataclass(slots=True, kw_only=True)
class TableView:
    """What the address of the page says about the table; `sort` is a field, after a minus if it is descending.

    Without `columns` the usual ones are shown.
    """

    search: str = ""
    where: str = ""
    statuses: list[str] = field(default_factory=list)
    sort: str = ""
    filters: JsonObject = field(default_factory=dict)
    columns: Sequence[str] = ()

    @classmethod
    def parse(cls, search: str, where: str, status: str, sort: str, filters: str, columns: str) -> TableView:
        """Read the query of an address, without what makes no sense.

        >>> TableView.parse("", "", "FAILED,NONE", "-duration", "{", "status,duration").statuses
        ['FAILED']
        """
        try:
            model = json.loads(filters or "{}")
        except ValueError:
            model = {}
        return cls(
            search=search,
            where=where,
            statuses=[word for word in status.split(",") if word in STATUS_WORDS],
            sort=sort,
            filters=model if isinstance(model, dict) else {},
            columns=[word for word in columns.split(",") if word],
        )

    @property
    def is_filtered(self) -> bool:
        """Whether the controls above the table may leave out trials."""
        return bool(self.search or self.where or self.statuses)

    def filters_of(self, columns: Sequence[Column]) -> dict[str, JsonObject]:
        """Return the filters of these columns, with the options of a filter and no others.

        The grid runs options whose names begin with a colon, and the address of the page may come from anywhere.

        >>> filters = '{"duration": {"type": "lessThan", "filter": 3, ":x": "alert(1)"}, ":x": "alert(1)"}'
        >>> TableView.parse("", "", "", "", filters, "").filters_of([Column(field="duration", head="Took")])
        {'duration': {'type': 'lessThan', 'filter': 3}}
        """
        models = {column.field: self.filters.get(column.field) for column in columns}
        return {
            name: {
                key: model[key] for key in _FILTER_OPTIONS if isinstance(model.get(key), str | int | float)
            }
            for name, model in models.items()
            if isinstance(model, dict)
        }

    def definition(self, column: Column, usual: str) -> JsonObject:
        """Return the definition of a column for AG Grid; `usual` is the order without a choice."""
        sort = self.sort or usual
        hidden = column.field not in self.columns if self.columns else column.hidden
        order = (
            {"sort": "desc" if sort.startswith("-") else "asc"} if sort.lstrip("-") == column.field else {}
        )
        return {**column.definition, "hide": hidden, **order}


def _problem_of(where: str) -> str:
    """Return what is wrong with a condition; empty if it is valid.

    >>> _problem_of("parameters.lr < 0.1"), _problem_of("")
    ('', '')
    >>> _problem_of("nothing = 1")[:36]
    "'nothing' is not a field of a trial:"
    """
    try:
        TrialQuery(conditions=Condition.parse_all(where) if where.strip() else ()).where()
    except QueryError as error:
        return str(error)
    return ""
