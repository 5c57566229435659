"""The JSON API under `/api/v1`, described by its own OpenAPI document.

Endpoints are plain functions, which FastAPI runs in threads, so reading the store never blocks the server's loop.
Responses that many clients request are computed once (`ResponseCache`).
"""

from __future__ import annotations

from fastapi import APIRouter

from . import change_routes, experiment_routes, trial_routes
from .event_streams import Streams, event_router, log_router
from .models import Status
from .responses import (
    PROBLEMS,
    TrialName,
    add_problem_handlers,
    cached_response,
    json_response,
    problem,
    shown,
    view_of,
)


def api_router() -> APIRouter:
    """Return a router with all routes of the API."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    parts = (experiment_routes.router, trial_routes.router, change_routes.router)
    for part in (*parts, event_router, log_router, trial_routes.export_router):
        router.include_router(part)
    return router
