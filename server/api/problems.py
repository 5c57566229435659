"""Error responses: `{"error": "a sentence"}` with a matching status."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...manager.control import ControlError
from ...store import StoreError
from ...store.reading import QueryError, to_json
from ..security import Refusal
from .models import Problem

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
_OF_KIND = {"unreachable": 503, "not found": 404, "conflict": 409, "invalid": 422, "failed": 500}


def add_problem_handlers(app: FastAPI) -> None:
    """Turn the exceptions of endpoints into responses."""
    app.add_exception_handler(LookupError, _missing)
    app.add_exception_handler(QueryError, _senseless)
    app.add_exception_handler(ControlError, _refused)
    app.add_exception_handler(StoreError, _unreadable)
    app.add_exception_handler(Refusal, _not_let_in)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return a problem as a response."""
    return Response(to_json({"error": message}), status, headers, media_type="application/json")


async def _missing(_request: Request, error: Exception) -> Response:
    return problem(404, str(error.args[0]) if error.args else "not found")


async def _senseless(_request: Request, error: Exception) -> Response:
    return problem(422, str(error))


async def _refused(_request: Request, error: Exception) -> Response:
    kind = error.kind if isinstance(error, ControlError) else "conflict"
    return problem(_OF_KIND[kind], str(error))


async def _unreadable(_request: Request, error: Exception) -> Response:
    return problem(503, str(error))


async def _not_let_in(_request: Request, error: Exception) -> Response:
    return problem(error.status if isinstance(error, Refusal) else 403, str(error))


async def _invalid(_request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    problems = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in found[:10]]
    return problem(422, "; ".join(problems) or "the request is invalid")


async def _http(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        return problem(500, "the server failed: see its log")
    status = 422 if error.status_code == 400 else error.status_code  # a body that is not JSON
    return problem(status, str(error.detail), dict(error.headers or {}))
