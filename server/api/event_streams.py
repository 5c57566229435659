"""Events and logs: read in pieces, or followed as server-sent events until the client closes the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.types import DecoratedCallable
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from ...store.reading import ExperimentView, FilePiece, Follow, to_json
from .models import EventPage, LogFile, LogPiece
from .responses import ExperimentName, LogName, Offset, TrialName, json_response, view_of

# SQLite and the file system send no notifications, so they are polled: seconds.
_LOOK_EVERY = 0.25
# Occasional comments keep proxies from closing the connection and reveal clients that are gone.
_ALIVE_EVERY = 15.0
_PIECE = 64 * 1024
Cursor = Annotated[
    str | None,
    Query(max_length=50, description="The cursor of the last response; without one, events from now on."),
]
Lines = Annotated[
    int | None, Query(ge=0, le=100_000, description="The number of last lines, instead of `offset`.")
]
Limit = Annotated[int, Query(ge=4, le=1024 * 1024, description="Bytes.")]

event_router = APIRouter(tags=["events"])
log_router = APIRouter(tags=["logs"])


def _streaming(router: APIRouter, path: str) -> Callable[[DecoratedCallable], DecoratedCallable]:
    """Make a function the endpoint of a path; it returns a stream of server-sent events."""
    stream = {"content": {"text/event-stream": {}}, "description": "Ends when the client disconnects."}
    return router.get(path, response_class=StreamingResponse, responses={200: stream})


@event_router.get("/experiments/{experiment}/events", response_model=EventPage)
def list_events(
    request: Request,
    experiment: ExperimentName,
    since: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Return the events since a cursor."""
    return json_response(view_of(request, experiment).events(since, limit))


@_streaming(event_router, "/experiments/{experiment}/events/stream")
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
    return await _stream_response(request, event_stream(view, last_event_id or since))


async def _part(lines: Lines = None, offset: Offset = 0, limit: Limit = 256 * 1024) -> Follow:
    return Follow(lines, offset, limit)


Part = Annotated[Follow, Depends(_part)]


@log_router.get("/experiments/{experiment}/logs", response_model=list[LogFile])
def list_logs(request: Request, experiment: ExperimentName) -> Response:
    """List the logs of the manager, the dispatcher and the agents."""
    return json_response(view_of(request, experiment).logs())


@log_router.get("/experiments/{experiment}/logs/{name}", response_model=LogPiece)
def get_log(request: Request, experiment: ExperimentName, name: LogName, part: Part) -> Response:
    """Return a piece of a log."""
    return json_response(view_of(request, experiment).log(name, part))


@_streaming(log_router, "/experiments/{experiment}/logs/{name}/follow")
async def follow_log(
    request: Request, experiment: ExperimentName, name: LogName, offset: Offset = 0
) -> StreamingResponse:
    """Stream what is written to a log from byte `offset` on."""
    view = await asyncio.to_thread(view_of, request, experiment)
    return await _stream_response(request, log_stream(lambda follow: view.log(name, follow), offset))


@log_router.get("/experiments/{experiment}/trials/{trial}/logs", response_model=list[LogFile])
def list_trial_logs(request: Request, experiment: ExperimentName, trial: TrialName) -> Response:
    """List the files with the output and the parameters of a trial."""
    return json_response(view_of(request, experiment).trial_logs(trial))


@log_router.get("/experiments/{experiment}/trials/{trial}/logs/{name}", response_model=LogPiece)
def get_trial_log(
    request: Request, experiment: ExperimentName, trial: TrialName, name: LogName, part: Part
) -> Response:
    """Return a piece of a trial's output."""
    return json_response(view_of(request, experiment).trial_log(trial, name, part))


@_streaming(log_router, "/experiments/{experiment}/trials/{trial}/logs/{name}/follow")
async def follow_trial_log(
    request: Request, experiment: ExperimentName, trial: TrialName, name: LogName, offset: Offset = 0
) -> StreamingResponse:
    """Stream what a trial prints from byte `offset` on."""
    view = await asyncio.to_thread(view_of, request, experiment)
    messages = log_stream(lambda follow: view.trial_log(trial, name, follow), offset)
    return await _stream_response(request, messages)


# ---------------------------------------------------------------------- streams


class Streams:
    """Counts the open streams, and ends them with the server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End all streams."""
        self._ended.set()

    def check(self) -> None:
        """Raise `HTTPException` if no further stream is allowed."""
        if self._open >= self._most:
            raise HTTPException(429, f"{self._most} streams are already open: close one")

    async def each(self, messages: AsyncIterator[bytes | None]) -> AsyncIterator[bytes]:
        """Yield the messages as they come; None where polling found nothing new."""
        self._open += 1
        idle = 0.0
        try:
            async for message in messages:
                if message is not None:
                    idle = 0.0
                    yield message
                    continue
                if idle >= _ALIVE_EVERY:
                    idle = 0.0
                    yield b": alive\n\n"
                idle += _LOOK_EVERY
                if await self._is_over(_LOOK_EVERY):
                    return
        finally:
            self._open -= 1

    async def _is_over(self, seconds: float) -> bool:
        """Wait up to this long for the end of the server; return whether it came."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return False
        return True


async def _stream_response(request: Request, messages: AsyncIterator[bytes | None]) -> StreamingResponse:
    """Return a response that streams, after its first message or poll has succeeded."""
    streams: Streams = request.app.state.streams
    streams.check()
    first = await anext(messages)

    async def from_first() -> AsyncIterator[bytes | None]:
        yield first
        async for message in messages:
            yield message

    body = streams.each(from_first())
    return StreamingResponse(body, media_type="text/event-stream", headers={"cache-control": "no-store"})


async def event_stream(view: ExperimentView, cursor: str | None) -> AsyncIterator[bytes | None]:
    """Yield the events of an experiment after a cursor."""
    while True:
        page = await asyncio.to_thread(view.events, cursor, 500)
        if page.reset or cursor is None:
            yield _message("reset" if page.reset else "hello", {"cursor": page.cursor}, page.cursor)
        name = page.cursor.partition(".")[0]
        for event in page.events:
            yield _message(event.kind, event, f"{name}.{event.n}")
        cursor = page.cursor
        if not page.events:
            yield None


async def log_stream(read: Callable[[Follow], FilePiece], offset: int) -> AsyncIterator[bytes | None]:
    """Yield what is written to a file after an offset; a file that starts again is read from its beginning."""
    while True:
        piece = await asyncio.to_thread(read, Follow(offset=offset, limit=_PIECE))
        if piece.size < offset:
            offset = 0
            yield _message("truncated", {"offset": 0}, "0")
            continue
        if piece.next_offset > offset:
            offset = piece.next_offset
            yield _message("log", {"text": piece.text, "next_offset": offset}, str(offset))
            continue
        yield None


def _message(kind: str, data: object, number: str) -> bytes:
    return f"id: {number}\nevent: {kind}\ndata: ".encode() + to_json(data) + b"\n\n"
