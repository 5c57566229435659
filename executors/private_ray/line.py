"""A connection to the keeper of the private Ray: one JSON object per line, there and back."""

from __future__ import annotations

import asyncio
import json
import socket
import weakref
from typing import Any

from .places import KeeperPlace

__all__ = ["KeeperLine"]

_PART = 64 * 1024


class KeeperLine:
    """An open connection; it is closed at the latest when nobody refers to it any more."""

    def __init__(self, line: socket.socket) -> None:
        self._socket = line
        self.close = weakref.finalize(self, line.close)

    @classmethod
    def to(cls, place: KeeperPlace) -> KeeperLine | None:
        """A line to the keeper of this place; None if there is none."""
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(place.socket))
        except OSError:
            line.close()
            return None
        return cls(line)

    def __enter__(self) -> KeeperLine:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    async def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send a message, wait for its answer; raises EOFError, TimeoutError or OSError."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        async with asyncio.timeout(timeout):
            await loop.sock_sendall(self._socket, _pack(message))
            answer = b""
            while not answer.endswith(b"\n"):
                answer += _not_the_end(await loop.sock_recv(self._socket, _PART))
        return json.loads(answer)

    def ask_now(self, message: dict[str, Any], timeout: float) -> dict[str, Any] | None:
        """The same, blocking; None when the keeper ends instead."""
        self._socket.settimeout(timeout)
        try:
            self._socket.sendall(_pack(message))
            answer = b""
            while not answer.endswith(b"\n"):
                answer += _not_the_end(self._socket.recv(_PART))
        except (OSError, EOFError):
            return None
        return json.loads(answer)

    async def until_end(self, timeout: float | None) -> None:
        """Wait until the keeper is gone; raises TimeoutError or OSError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            while await loop.sock_recv(self._socket, _PART):
                pass


def _pack(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _not_the_end(part: bytes) -> bytes:
    if not part:
        raise EOFError
    return part
