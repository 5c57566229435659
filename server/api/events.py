"""Events: since a cursor, or as a stream."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from .event_streams import EVENT_STREAM, event_stream, stream_response
from .models import EventPage
from .responses import ExperimentName, json_response, view_of

router = APIRouter(tags=["events"])
Cursor = Annotated[
    str | None,
    Query(max_length=50, description="The cursor of the last response; without one, events from now on."),
]


@router.get("/experiments/{experiment}/events", response_model=EventPage)
def list_events(
    request: Request,
    experiment: ExperimentName,
    since: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Return the events since a cursor."""
    return json_response(view_of(request, experiment).events(since, limit))


@router.get("/experiments/{experiment}/events/stream", **EVENT_STREAM)
async def follow_events(
    request: Request,
    experiment: ExperimentName,
    since: Cursor = None,
    last_event_id: Annotated[str | None, Header(max_length=50)] = None,
) -> StreamingResponse:
    """Stream server-sent events: `experiment`, `trial`, `results`, and `reset` when everything has to be read again.

    The id of each is the cursor after it: a client that reconnects with `Last-Event-ID` misses nothing.
    """
    view = await asyncio.to_thread(view_of, request, experiment)
    return await stream_response(request, event_stream(view, last_event_id or since))
