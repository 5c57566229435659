"""The web application: API, the routes of other tuners, and pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.responses import RedirectResponse

from ..protocol import foreign
from .api import (
    PROBLEMS,
    Streams,
    add_problem_handlers,
    change_router,
    event_router,
    experiment_router,
    export_router,
    log_router,
    trial_router,
)
from .experiments import Experiments
from .security import ServerSettings

_ABOUT = """Show and control experiments.

Times are seconds since the epoch, durations are in seconds, NaN and infinities are null. A failed request returns
`{"error": "a sentence"}`. On an address that other machines can reach, send `Authorization: Bearer TOKEN`.
"""


def create_app(
    experiments: Experiments, settings: ServerSettings | None = None, *, pages: bool = True
) -> FastAPI:
    """Return the application for some experiments, without its guard; `pages` only once per process.

    `/api/v1` is the API with its `openapi.json`; `/trials` and `/stop_experiment` are TuneServer's; the pages are below
    `/ui`.
    """
    settings = settings or ServerSettings()
    app = FastAPI(
        title="Pitchpipe",
        version=version("pitchpipe"),
        description=_ABOUT,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.experiments = experiments
    app.state.streams = Streams(settings.limits.streams)
    add_problem_handlers(app)
    app.include_router(_api_router())
    for other in foreign("routes"):
        app.include_router(other.router)
    if pages:
        from .pages import ROOT, add_pages  # NiceGUI takes seconds to import, and the API does without it

        start = f"{ROOT}/{experiments.only or ''}"
        app.add_api_route("/", lambda: RedirectResponse(start), include_in_schema=False)
        add_pages(app, experiments)
    return app


def _api_router() -> APIRouter:
    api = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    for part in (experiment_router, trial_router, change_router, event_router, log_router, export_router):
        api.include_router(part)
    return api


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        app.state.streams.end()
        app.state.experiments.close()
