"""The JSON API under `/api/v1`, described by its own OpenAPI document.

Endpoints are plain functions, which FastAPI runs in threads, so reading the store never blocks the server's loop.
Responses that many clients request are computed once (`response_cache.py`).
"""

from __future__ import annotations

from fastapi import APIRouter

from . import changes, events, experiments, export, logs, nni, trials
from .common import TrialName, cached_response, json_response, shown
from .problems import PROBLEMS, add_problem_handlers
from .streams import Streams

__all__ = [
    "PROBLEMS",
    "Streams",
    "TrialName",
    "add_problem_handlers",
    "api_router",
    "cached_response",
    "json_response",
    "nni_router",
    "shown",
]


def api_router() -> APIRouter:
    """Return a router with all routes of the API."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    for part in (experiments, trials, changes, events, logs, export):
        router.include_router(part.router)
    return router


def nni_router() -> APIRouter:
    """Return a router with the routes of NNI: of the current experiment, and with an id in front of any other."""
    router = APIRouter()
    for prefix in ("/api/v1/nni", "/{experiment}/api/v1/nni"):
        router.include_router(nni.router, prefix=prefix)
    return router
