"""What all endpoints share: the requested experiment, bounded parameters, responses with a tag, error responses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...manager.control import ControlError
from ...store import StoreError
from ...store.reading import ExperimentView, QueryError, to_json
from ..experiments import Arguments, Experiments
from .models import Problem

BIGGEST = 2**53
ExperimentName = Annotated[
    str, Path(max_length=100, description="The experiment's id, the beginning of only one id, or `current`.")
]
TrialName = Annotated[str, Path(max_length=50, description="The trial's number or its id.")]
LogName = Annotated[str, Path(max_length=100)]
Offset = Annotated[int, Query(ge=0, le=BIGGEST)]

_MEANINGS = {
    403: "The request comes from a page of another site.",
    404: "It does not exist.",
    409: "The present state does not allow it.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The request is invalid.",
    429: "Too many requests of this kind.",
    503: "The manager or the database does not respond.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": meaning} for status, meaning in _MEANINGS.items()
}
_CONTROL_STATUSES = {"unreachable": 503, "not found": 404, "conflict": 409, "invalid": 422, "failed": 500}


def view_of(request: Request, name: str) -> ExperimentView:
    """Return the view of the requested experiment; raise `LookupError` if there is none."""
    return experiments_of(request).view(name)


def experiments_of(request: Request) -> Experiments:
    """Return the experiments of the server."""
    return request.app.state.experiments


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as a response."""
    return Response(to_json(value), status, headers, media_type="application/json")


def cached_response(
    request: Request,
    name: str,
    compute: Callable[[ExperimentView, *Arguments], object],
    *arguments: *Arguments,
    lasting: float = math.inf,
) -> Response:
    """Return what `compute` makes of the requested experiment, or 304 to a client that has it already.

    It is computed once for all clients. Raise `LookupError` if there is no such experiment.
    """
    cached = experiments_of(request).served(name).response(compute, *arguments, lasting=lasting)
    headers = {"etag": f'"{cached.tag}"', "cache-control": "no-cache"}
    if cached.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(cached.body, headers=headers, media_type="application/json")


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return an error response: `{"error": "a sentence"}`."""
    return json_response({"error": message}, status, headers)


def add_problem_handlers(app: FastAPI) -> None:
    """Turn the exceptions of endpoints into error responses."""
    for kind in (LookupError, QueryError, ControlError, StoreError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _problem_of)


async def _problem_of(_request: Request, error: Exception) -> Response:
    match error:
        case HTTPException(status_code=status):
            # 400 is a body that is not JSON.
            return problem(422 if status == 400 else status, str(error.detail), dict(error.headers or {}))
        case RequestValidationError():
            faults = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:10]]
            return problem(422, "; ".join(faults) or "the request is invalid")
        case ControlError():
            return problem(_CONTROL_STATUSES[error.kind], str(error))
        case StoreError():
            return problem(503, str(error))
        case QueryError():
            return problem(422, str(error))
        case _:
            return problem(404, str(error.args[0]) if error.args else "not found")
