"""Server-sent events: responses that continue until the client closes the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import Request
from starlette.responses import StreamingResponse

from ...store.reading import ExperimentView, FilePiece, Follow, to_json
from ..security import Refusal

EVENT_STREAM: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {"content": {"text/event-stream": {}}, "description": "Ends when the client disconnects."}
    },
}
# SQLite and the file system send no notifications, so they are polled: seconds.
_LOOK_EVERY = 0.25
# Occasional comments keep proxies from closing the connection and reveal clients that are gone.
_ALIVE_EVERY = 15.0
_PIECE = 64 * 1024


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
        """Raise `Refusal` if no further stream is allowed."""
        if self._open >= self._most:
            raise Refusal(429, f"{self._most} streams are already open: close one")

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


async def stream_response(request: Request, messages: AsyncIterator[bytes | None]) -> StreamingResponse:
    """Return a response that streams, after its first message or poll has succeeded."""
    streams: Streams = request.app.state.streams
    streams.check()
    first = await anext(messages)
    body = streams.each(_with_first(first, messages))
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


async def _with_first(
    first: bytes | None, messages: AsyncIterator[bytes | None]
) -> AsyncIterator[bytes | None]:
    yield first
    async for message in messages:
        yield message


def _message(kind: str, data: object, number: str) -> bytes:
    return f"id: {number}\nevent: {kind}\ndata: ".encode() + to_json(data) + b"\n\n"
