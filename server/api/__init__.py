"""The JSON API under `/api/v1`, described by its own OpenAPI document.

Endpoints are plain functions, which FastAPI runs in threads, so reading the store never blocks the server's loop.
Responses that many clients request are computed once (`response_cache.py`).
"""

from __future__ import annotations

from fastapi import APIRouter

from . import change_routes, events, experiment_routes, export, logs, trial_routes
from .event_streams import Streams
from .models import Status
from .problems import PROBLEMS, add_problem_handlers
from .responses import TrialName, cached_response, json_response, shown, view_of


def api_router() -> APIRouter:
    """Return a router with all routes of the API."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    for part in (experiment_routes, trial_routes, change_routes, events, logs, export):
        router.include_router(part.router)
    return router
