"""A deadline for request headers: uvicorn itself waits without limit, and each connection counts."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["http_protocol"]

# AutoHTTPProtocol is one of two classes; both have what is used here.
_Base: Any = AutoHTTPProtocol


def http_protocol(seconds: float) -> type[asyncio.Protocol]:
    """Return a protocol of uvicorn that closes a connection whose request headers take longer than this."""
    return type("Protocol", (_PunctualProtocol,), {"seconds": seconds})


class _PunctualProtocol(_Base):
    """Starts the clock with the connection, and again after each response."""

    seconds: float
    transport: Any
    cycle: Any
    loop: asyncio.AbstractEventLoop
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._set_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def _set_deadline(self) -> None:
        self._clear_deadline()
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.seconds, self._close_if_waiting)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_waiting(self) -> None:
        """Close the connection unless it is processing a request or has become a websocket."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and self.transport.get_protocol() is self:
            self.transport.close()
