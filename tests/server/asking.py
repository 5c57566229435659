"""Requests to the application in this process, through its guard but without a socket; and a server in a thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

from pitchpipe.server.application import create_app
from pitchpipe.server.experiments import Experiments
from pitchpipe.server.request_guard import RequestGuard
from pitchpipe.server.security import ServerLimits, ServerSettings
from pitchpipe.server.serving import Serving


@dataclass(slots=True)
class Reply:
    """A response."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    closed_with: int | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return self.json["error"]


@cache
def _application() -> FastAPI:
    """Return the application, made once because that takes half a second; each test sets its experiments."""
    return create_app(Experiments(Path("nowhere")), pages=False)


class Asking:
    """Sends requests to the application about a directory of experiments."""

    def __init__(self, experiments: Experiments, settings: ServerSettings | None = None) -> None:
        settings = settings or ServerSettings()
        self.app = _application()
        self.app.state.experiments = experiments
        self.guard = RequestGuard(self.app, settings)
        self.peer = "127.0.0.1"

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Reply:
        return self.ask("GET", path + (f"?{urlencode(query, doseq=True)}" if query else ""), None, headers)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Reply:
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        given = (
            {"host": "localhost:8000"}
            | ({"content-type": "application/json"} if data else {})
            | (headers or {})
        )
        if data:
            given.setdefault("content-length", str(len(data)))
        return asyncio.run(self._ask("http", method, path, data, given))

    def open_websocket(self, path: str, headers: dict[str, str]) -> Reply:
        return asyncio.run(self._ask("websocket", "GET", path, b"", {"host": "localhost:8000"} | headers))

    async def _ask(self, kind: str, method: str, path: str, data: bytes, headers: dict[str, str]) -> Reply:
        reply = Reply()
        waiting = (
            [{"type": "websocket.connect"}]
            if kind == "websocket"
            else [{"type": "http.request", "body": data}]
        )
        done = asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            if waiting:
                return waiting.pop(0)
            await done.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message["type"] == "http.response.body":
                reply.body += message.get("body", b"")
            elif message["type"] == "websocket.close":
                reply.closed_with = message["code"]

        where, _, query = path.partition("?")
        scope = {
            "type": kind,
            "method": method,
            "path": where,
            "raw_path": where.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": (self.peer, 50000),
            "scheme": "http" if kind == "http" else "ws",
            "server": ("localhost", 8000),
            "http_version": "1.1",
        }
        await self.guard(scope, receive, send)
        done.set()
        return reply


@contextmanager
def served(directory: Path, limits: ServerLimits) -> Iterator[Serving]:
    """Serve the API of a directory in a thread of this process."""
    ready = threading.Event()
    settings = ServerSettings(limits=limits)
    serving = Serving(Experiments(directory), settings, pages=False, on_ready=lambda _url: ready.set())
    thread = threading.Thread(target=serving.run)
    thread.start()
    try:
        assert ready.wait(60)
        yield serving
    finally:
        serving.end()
        thread.join()
