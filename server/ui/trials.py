"""The table of trials: rows are fetched as they scroll into view, sorted and filtered by the store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from nicegui import html, ui

from ..experiments import Experiments
from .elements import action
from .frame import Where, experiment_frame
from .grid_columns import Column, columns_of
from .live import Event
from .trial_actions import TrialActions
from .wording import STATUSES, trial_word

__all__ = ["trials_page"]

_BLOCK = 100


async def trials_page(
    experiments: Experiments, experiment_id: str, search: str = "", status: str = ""
) -> None:
    """Show the trials; `search` and `status` (several joined by commas) are the initial filters."""
    async with experiment_frame(experiments, experiment_id, "Trials", "trials") as (view, where, live):
        config, metrics = await asyncio.to_thread(lambda: (view.config(), view.metric_names()))
        statuses = [word for word in status.split(",") if word in STATUSES]
        html.h1("Trials").classes("pp-hidden")
        table = _Table(where, columns_of(config, metrics), search, statuses)
        table.build(TrialActions(view, where))

        async def refresh(events: list[Event]) -> None:
            where.show_status(await asyncio.to_thread(view.summary))
            if not events or any(event["kind"] in ("trial", "results") for event in events):
                table.refresh()

        live.on_change(refresh)


class _Table:
    """The grid with its tools; `search` and `statuses` choose trials, besides the filters of the columns."""

    def __init__(self, where: Where, columns: Sequence[Column], search: str, statuses: list[str]) -> None:
        self._where = where
        self._columns = columns
        self._searched = search
        self._statuses = statuses
        self._grid: Any = None
        self._count: Any = None

    def build(self, actions: TrialActions) -> None:
        """Make the tools and the grid."""
        with html.div().classes("pp-row").props('role=toolbar aria-label="Tools of the table"'):
            self._search_field()
            self._status_field()
            self._column_menu()
            self._count = ui.label().classes("pp-dim").props("role=status").mark("trial-count")
            html.span().style("flex: 1")
            actions.toolbar(self.selected)
        grid = ui.aggrid(self._options(), html_columns=[0], auto_size_columns=False).classes("pp-grid")
        grid.props('aria-label="Trials"')
        grid.on("selectionChanged", lambda: actions.show_selected(self.selected), args=[])
        self._grid = grid
        ui.on("rows_counted", lambda event: self._show_count(event.args))
        ui.on("rows_refused", lambda event: ui.notify(str(event.args), type="negative", multi_line=True))

    def refresh(self) -> None:
        """Fetch the visible rows again; selection and scroll position stay."""
        self._grid.run_grid_method("refreshInfiniteCache")

    async def selected(self) -> list[int]:
        """Return the numbers of the selected trials."""
        rows = await self._grid.get_selected_rows()
        return sorted(row["number"] for row in rows or () if row)

    def _show_count(self, total: Any) -> None:
        self._count.set_text(
            "1 trial" if total == 1 else f"{total:,} trials" if isinstance(total, int) else ""
        )

    def _search_field(self) -> None:
        field = ui.input("Search", value=self._searched, on_change=lambda event: self._search(event.value))
        field.props("outlined dense clearable debounce=100 type=search").style("width: 15rem")
        field.tooltip("Text in parameters, reasons and errors, or the number or id of a trial")

    def _search(self, text: str | None) -> None:
        self._searched = (text or "").strip()
        self._fetch_again()

    def _status_field(self) -> None:
        options = {status: trial_word(status) for status in STATUSES}
        chosen = ui.select(options, multiple=True, label="Status", value=self._statuses)
        chosen.props("outlined dense clearable options-dense use-chips").style("min-width: 11rem")
        chosen.on_value_change(lambda event: self._choose(event.value))

    def _choose(self, statuses: list[str] | None) -> None:
        self._statuses = list(statuses or ())
        self._fetch_again()

    def _column_menu(self) -> None:
        with (
            action("Columns", lambda: None, icon="view_column"),
            ui.menu(),
            ui.column().style("padding: .6rem 1rem; gap: 0"),
        ):
            for column in self._columns[1:]:
                box = ui.checkbox(column.head, value=not column.hidden).props("dense")
                box.on_value_change(
                    lambda event, name=column.field: self._show_column(name, bool(event.value))
                )

    def _show_column(self, name: str, visible: bool) -> None:
        self._grid.run_grid_method("setColumnsVisible", [name], visible)

    def _fetch_again(self) -> None:
        self._grid.run_grid_method("setGridOption", "datasource", self._source())

    def _source(self) -> dict[str, Any]:
        """Return AG Grid's data source: each block of rows is one request."""
        chosen = {"search": self._searched, "status": ",".join(self._statuses)}
        address = json.dumps(f"{self._where.path('rows')}?{urlencode(chosen)}&")
        return {":getRows": _FETCH.replace("ADDRESS", address)}

    def _options(self) -> dict[str, Any]:
        first, *others = [column.definition for column in self._columns]
        return {
            "columnDefs": [{**first, "pinned": "left"}, *others],
            "defaultColDef": {"sortable": True, "resizable": True, "suppressHeaderMenuButton": False},
            "suppressFieldDotNotation": True,
            "rowModelType": "infinite",
            "rowHeight": 34,
            "headerHeight": 38,
            "cacheBlockSize": _BLOCK,
            "maxBlocksInCache": 50,
            "infiniteInitialRowCount": 20,
            "datasource": self._source(),
            ":getRowId": "row => String(row.data.number)",
            "rowSelection": {"mode": "multiRow", "checkboxes": True, "headerCheckbox": False},
            "selectionColumnDef": {"pinned": "left", "width": 44},
            ":onRowDoubleClicked": "row => { if (row.data) location.href = row.data.address }",
            ":onCellKeyDown": "cell => { if (cell.event.key === 'Enter' && cell.data)"
            " location.href = cell.data.address }",
            "enableCellTextSelection": True,
            "ensureDomOrder": True,
        }


_FETCH = (
    "ask => fetch(ADDRESS + new URLSearchParams({start: ask.startRow, end: ask.endRow,"
    " sort: JSON.stringify(ask.sortModel), filter: JSON.stringify(ask.filterModel)}))"
    ".then(response => response.json()).then(found => {"
    " if (found.error) throw new Error(found.error);"
    " ask.successCallback(found.rows, found.total); emitEvent('rows_counted', found.total) })"
    ".catch(error => { ask.failCallback(); emitEvent('rows_refused', error.message) })"
)
