"""The JSON API under `/api/v1`, described by its own OpenAPI document.

Endpoints are plain functions, which FastAPI runs in threads, so reading the store never blocks the server's loop.
Responses that many clients request are computed once (`ResponseCache`).
"""

from __future__ import annotations

from .event_streams import Streams, event_router, log_router
from .experiment_routes import change_router, experiment_router
from .models import Status
from .responses import (
    PROBLEMS,
    TrialName,
    add_problem_handlers,
    cached_response,
    json_response,
    problem,
    view_of,
)
from .trial_routes import export_router, trial_router
