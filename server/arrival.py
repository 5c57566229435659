"""Deadlines for request headers and stalled responses: uvicorn waits without limit, and each connection counts."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# AutoHTTPProtocol is one of two classes; both have what is used here.
_Base: Any = AutoHTTPProtocol


def http_protocol(head_seconds: float, stall_seconds: float) -> type[asyncio.Protocol]:
    """Return a protocol of uvicorn that closes connections whose headers are late or whose reader stalls."""
    deadlines = {"head_seconds": head_seconds, "stall_seconds": stall_seconds}
    return type("Protocol", (_PunctualProtocol,), deadlines)


class _PunctualProtocol(_Base):
    """Expects headers after the connection and after each response, and that a full write buffer empties."""

    head_seconds: float
    stall_seconds: float
    transport: Any
    cycle: Any
    loop: asyncio.AbstractEventLoop
    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._set_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        self._clear_stall()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._clear_stall()
        # `close` would wait for the reader; `abort` drops what is buffered.
        self._stall = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._clear_stall()
        super().resume_writing()

    def _set_deadline(self) -> None:
        self._clear_deadline()
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.head_seconds, self._close_if_waiting)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _clear_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _close_if_waiting(self) -> None:
        """Close the connection unless it is processing a request or has become a websocket."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and self.transport.get_protocol() is self:
            self.transport.close()
