"""What all endpoints share: the requested experiment, bounded parameters, responses with a tag."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from ...store.reading import ExperimentView, to_json
from ..experiments import Experiments, Shown

_BIGGEST = 2**53
ExperimentName = Annotated[
    str, Path(max_length=100, description="The experiment's id, the beginning of only one id, or `current`.")
]
TrialName = Annotated[str, Path(max_length=50, description="The trial's number or its id.")]
LogName = Annotated[str, Path(max_length=100)]
Offset = Annotated[int, Query(ge=0, le=_BIGGEST)]


def shown(request: Request, name: str) -> Shown:
    """Return the requested experiment; raise `LookupError` if there is none."""
    experiments: Experiments = request.app.state.experiments
    return experiments.shown(name)


def view_of(request: Request, name: str) -> ExperimentView:
    """Return the view of the requested experiment; raise `LookupError` if there is none."""
    return shown(request, name).view


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a value as a response."""
    return Response(to_json(value), status, headers, media_type="application/json")


def cached_response(
    request: Request,
    experiment: Shown,
    key: Hashable,
    compute: Callable[[], Any],
    lasting: float = float("inf"),
) -> Response:
    """Return a response from the cache, or 304 to a client that has it already."""
    cached = experiment.responses.get(key, compute, lasting)
    headers = {"etag": f'"{cached.tag}"', "cache-control": "no-cache"}
    if cached.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(cached.body, headers=headers, media_type="application/json")
