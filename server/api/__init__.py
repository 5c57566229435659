"""The JSON API under `/api/v1`: what it answers and takes is described by its own OpenAPI document.

Endpoints are plain functions that FastAPI runs in threads of its own: nothing that reads the store holds up the loop
that serves everybody. Answers that many ask for are worked out once (`answers.py`).
"""

from __future__ import annotations

from fastapi import APIRouter

from . import changes, events, experiments, export, logs, trials
from .common import TrialName, answered, given, shown
from .problems import PROBLEMS, add_problem_handlers
from .streams import Streams

__all__ = [
    "PROBLEMS",
    "Streams",
    "TrialName",
    "add_problem_handlers",
    "answered",
    "api_router",
    "given",
    "shown",
]


def api_router() -> APIRouter:
    """All routes of the API."""
    router = APIRouter(prefix="/api/v1", responses=PROBLEMS)
    for part in (experiments, trials, changes, events, logs, export):
        router.include_router(part.router)
    return router
