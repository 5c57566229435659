"""The routes of the pages on a web application."""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from importlib import import_module

import orjson
from fastapi import FastAPI, Request, Response
from nicegui import app as pages
from nicegui import ui

from ...store import StoreError
from ...store.reading import QueryError
from ..experiments import Experiments
from .compare_page import compare_page
from .comparison_page import comparison_page
from .experiments_page import ListView, experiments_page
from .frame import ROOT, Where, add_head, show_missing
from .grid_columns import columns_of, metric_column
from .logs_page import logs_page
from .overview_page import overview_page
from .plots_page import Choice, plots_page
from .readers import keep_to_their_pages
from .settings_page import settings_page
from .table_view import TableView
from .trial_grid import GridRequest, metrics_of, read_rows
from .trial_page import file_response, trial_page
from .trials import trials_page


def add_pages(app: FastAPI, experiments: Experiments) -> None:
    """Serve the pages below `ROOT`; once per process, because NiceGUI keeps its pages globally."""
    add_head()
    keep_to_their_pages()
    _add_routes(experiments)
    _add_data(experiments)
    ui.run_with(
        app,
        mount_path=ROOT,
        title="Pitchpipe",
        favicon=_FAVICON,
        language="en-US",
        dark=None,
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
        # A browser that is busy or asleep for less than this keeps its page, with what was typed into it.
        reconnect_timeout=30.0,
    )
    pages.on_startup(_warm_up)


# A tuning fork.
_FAVICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M11 3v10a5 5 0 0 0 10 0V3M16 18v11"'
    ' fill="none" stroke="#0f6cbd" stroke-width="4" stroke-linecap="round"/></svg>'
)


def _add_routes(experiments: Experiments) -> None:
    @ui.page("/")
    async def show_experiments(search: str = "", status: str = "", sort: str = "") -> None:
        await _guarded(experiments_page(experiments, ListView.parse(search, status, sort)))

    @ui.page("/{experiment}")
    async def show_overview(experiment: str) -> None:
        await _guarded(overview_page(experiments, experiment))

    @ui.page("/{experiment}/trials")
    async def show_trials(
        experiment: str,
        search: str = "",
        where: str = "",
        status: str = "",
        sort: str = "",
        filter: str = "",
        columns: str = "",
        families: str = "",
        selected: str = "",
    ) -> None:
        view = TableView.parse(search, where, status, sort, filter, columns, families, selected)
        await _guarded(trials_page(experiments, experiment, view))

    @ui.page("/{experiment}/trials/{trial}")
    async def show_trial(experiment: str, trial: str) -> None:
        await _guarded(trial_page(experiments, experiment, trial))

    @ui.page("/{experiment}/compare")
    async def show_compared(experiment: str, trials: str = "") -> None:
        await _guarded(compare_page(experiments, experiment, trials))

    @ui.page("/{experiment}/against")
    async def show_comparison(experiment: str, others: str = "") -> None:
        await _guarded(comparison_page(experiments, experiment, others))

    @ui.page("/{experiment}/plots")
    async def show_plots(experiment: str, request: Request) -> None:
        await _guarded(plots_page(experiments, experiment, Choice.parse(request.query_params)))

    @ui.page("/{experiment}/settings")
    async def show_settings(experiment: str) -> None:
        await _guarded(settings_page(experiments, experiment))

    @ui.page("/{experiment}/logs")
    async def show_logs(experiment: str, name: str = "") -> None:
        await _guarded(logs_page(experiments, experiment, name))


def _add_data(experiments: Experiments) -> None:
    """Add the addresses from which pages fetch the rows of the table of trials, and the files that a trial wrote."""

    @pages.get("/{experiment}/rows", include_in_schema=False)
    def give_rows(
        experiment: str,
        start: int = 0,
        end: int = 100,
        search: str = "",
        status: str = "",
        sort: str = "",
        filter: str = "",
        where: str = "",
        metrics: str = "",
        families: bool = False,
    ) -> Response:
        try:
            view = experiments.view(experiment)
            reported = [metric_column(name) for name in metrics_of(metrics)]
            columns = columns_of(view.config(), view.metric_names(), reported=reported)
            request = GridRequest.parse(start, end, search, status, sort, filter, where, families=families)
            block = read_rows(view, columns, request, Where(view.experiment_id).path("trials"))
        except (LookupError, QueryError, StoreError) as error:
            block = {"error": str(error)}
        return Response(orjson.dumps(block), media_type="application/json")

    @pages.get("/{experiment}/trials/{trial}/files/{name}", include_in_schema=False)
    def give_file(experiment: str, trial: str, name: str) -> Response:
        try:
            return file_response(experiments.view(experiment).output(trial, name))
        except (LookupError, StoreError) as error:
            return Response(str(error), 404, media_type="text/plain")


async def _guarded(page: Awaitable[None]) -> None:
    """Show a page, or a sentence on why it cannot be shown."""
    try:
        await page
    except (LookupError, StoreError) as error:
        show_missing(str(error))


def _warm_up() -> None:
    """Load plotly ahead of the first figure."""
    threading.Thread(target=lambda: import_module("plotly.subplots"), daemon=True).start()
