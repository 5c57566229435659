"""Serves the application in this process until it is asked to end: uvicorn, with deadlines for slow clients."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .application import create_app
from .experiments import Experiments
from .request_guard import RequestGuard
from .security import ServerSettings, url_of

_BACKLOG = 128
# AutoHTTPProtocol is one of two classes; both have what is used here.
_HTTPProtocol: Any = AutoHTTPProtocol


class ServingError(Exception):
    """The server cannot listen on its address; the message says what to do."""


def address_file(folder: Path) -> Path:
    """Return the file with the address of an experiment's server: JSON with `url` and `pid`."""
    return folder / "server.json"


class Serving:
    """One server: it has its port once it is made, and responds while `run` runs.

    Calls `on_ready` when it responds. Raises `ServingError` if the port is not available.
    """

    def __init__(
        self,
        experiments: Experiments,
        settings: ServerSettings,
        *,
        pages: bool = True,
        on_ready: Callable[[str], None] = lambda url: None,
    ) -> None:
        self._socket = _listening(settings)
        self.url = url_of(settings.host, self._socket.getsockname()[1])
        self._experiments = experiments
        config = uvicorn.Config(
            RequestGuard(create_app(experiments, settings, pages=pages), settings),
            http=http_protocol(settings.limits.head_seconds, settings.limits.stall_seconds),
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            lifespan="on",
            limit_concurrency=settings.limits.connections,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=2,
            ws_max_size=1024 * 1024,
        )
        self._server = _Server(config, lambda: on_ready(self.url))

    def run(self) -> None:
        """Serve requests until `end`, SIGTERM or SIGINT; remove the address file at the end."""
        file = self._announce()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            if file is not None:
                file.unlink(missing_ok=True)
            self._socket.close()

    def end(self) -> None:
        """Let `run` return; callable from any thread."""
        self._server.should_exit = True

    def end_with_stdin(self) -> None:
        """End when standard input is closed: the process at its other end is gone."""

        def wait() -> None:
            with suppress(OSError, ValueError):
                while os.read(sys.stdin.fileno(), 4096):
                    pass
            self.end()

        threading.Thread(target=wait, daemon=True).start()

    def _announce(self) -> Path | None:
        if self._experiments.only is None:
            return None
        file = address_file(self._experiments.directory / self._experiments.only)
        try:
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
                json.dump({"url": self.url, "pid": os.getpid()}, opened)
        except OSError:
            return None  # experiments in read-only folders are served, too
        return file


class _Server(uvicorn.Server):
    """A server of uvicorn that calls `on_ready` when it responds."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down cleanly on SIGINT and SIGTERM; uvicorn would raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()


def http_protocol(head_seconds: float, stall_seconds: float) -> type[asyncio.Protocol]:
    """Return a protocol of uvicorn that closes connections whose headers are late or whose reader stalls.

    uvicorn waits for both without a limit, and each such connection counts for `limit_concurrency`.
    """
    deadlines = {"head_seconds": head_seconds, "stall_seconds": stall_seconds}
    return type("Protocol", (_PunctualProtocol,), deadlines)


class _PunctualProtocol(_HTTPProtocol):
    """Closes a connection when headers are late, after its start or a response, or when its client stops reading."""

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
        _cancel(self._deadline)
        _cancel(self._stall)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._stall)
        # `close` would wait for the reader; `abort` drops what is buffered.
        self._stall = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._stall)
        super().resume_writing()

    def _set_deadline(self) -> None:
        _cancel(self._deadline)
        if not self.transport.is_closing():
            self._deadline = self.loop.call_later(self.head_seconds, self._close_if_waiting)

    def _close_if_waiting(self) -> None:
        """Close the connection unless it is processing a request or has become a websocket."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and self.transport.get_protocol() is self:
            self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def _listening(settings: ServerSettings) -> socket.socket:
    where = f"port {settings.port} of {settings.host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServingError(f"cannot listen on {where}: {error.strerror}") from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise ServingError(
            f"cannot listen on {where} ({error.strerror}): choose another port, or 0 for any free one"
        ) from error
    listening.set_inheritable(False)
    return listening
