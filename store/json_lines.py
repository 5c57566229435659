"""A connection over a Unix socket: one JSON object per line, there and back.

Verbs ask a manager, and managers the supervisor of the private Ray, through sockets in the user's runtime directory;
this module is beside the one that finds it, where both sides may import it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import weakref
from collections.abc import Mapping
from pathlib import Path

from ..protocol import Json

_PART = 64 * 1024


class JsonConnection:
    """An open connection; it is closed at the latest when nothing refers to it."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.close = weakref.finalize(self, connected.close)

    @classmethod
    def to(cls, path: Path, timeout: float | None = None) -> JsonConnection:
        """Connect to the socket at `path`; raises `OSError` if nothing listens, `TimeoutError` if it is overloaded."""
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(timeout)
            made.connect(str(path))
        except OSError:
            made.close()
            raise
        return cls(made)

    def __enter__(self) -> JsonConnection:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    async def ask(self, message: Mapping[str, object], timeout: float) -> Json:
        """Send a message and return the reply; raises `EOFError`, `TimeoutError`, `OSError` or `ValueError`."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        async with asyncio.timeout(timeout):
            await loop.sock_sendall(self._socket, json_line(message))
            reply = bytearray()
            while not reply.endswith(b"\n"):
                reply += _not_the_end(await loop.sock_recv(self._socket, _PART))
        return json.loads(reply)

    def ask_now(self, message: Mapping[str, object], timeout: float) -> Json:
        """Do the same, blocking; each wait takes `timeout` seconds at most."""
        self._socket.settimeout(timeout)
        self._socket.sendall(json_line(message))
        reply = bytearray()
        while not reply.endswith(b"\n"):
            reply += _not_the_end(self._socket.recv(_PART))
        return json.loads(reply)

    async def until_end(self, timeout: float | None) -> None:
        """Wait until the other side is gone; raises `TimeoutError` or `OSError`."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            while await loop.sock_recv(self._socket, _PART):
                pass


def json_line(message: Mapping[str, object]) -> bytes:
    """Return a message as its line.

    >>> json_line({"op": "status"})
    b'{"op": "status"}\\n'
    """
    return json.dumps(message).encode() + b"\n"


def _not_the_end(part: bytes) -> bytes:
    if not part:
        raise EOFError("the connection ended before the reply")
    return part
