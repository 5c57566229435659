"""A connection to an agent over its Unix socket, which notices when the agent falls silent."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from pathlib import Path
from typing import Any, cast

from ..store import runtime_directory
from ..trial_agent import (
    Hello,
    MessageDecoder,
    Ping,
    Poll,
    Request,
    decode_events,
    encode_message,
    encode_request,
)
from .agents import AgentLink, Listener
from .heartbeat import Heartbeat

__all__ = ["SUSPECT_AFTER", "SocketLink", "agent_sockets"]

_log = logging.getLogger(__name__)

# An agent that was silent for so long (s) gets no new work until it gives a sign of life.
SUSPECT_AFTER = 3.0
# A new process has to load its modules before it can say hello.
_START_TIMEOUT = 60.0


def agent_sockets(folder: Path) -> Path:
    """Return the directory of the sockets of an experiment's agents on this machine.

    Its name is a hash, because the path of a Unix socket is limited to 107 bytes.
    """
    return runtime_directory() / ("a-" + hashlib.blake2b(str(folder).encode(), digest_size=6).hexdigest())


class SocketLink(AgentLink, asyncio.Protocol):
    """Connects, says hello, and passes messages; what is sent before it is connected is kept until then.

    A reply carries the id of its message; the reply to a poll is a batch of events. An agent that is silent for
    `timeout` seconds is given up; a `new` one has more time to say hello.
    """

    def __init__(
        self,
        *,
        agent: str,
        path: Path,
        hello: Hello,
        listener: Listener,
        timeout: float = 10.0,
        new: bool = False,
    ) -> None:
        self._agent = agent
        self._listener = listener
        self._decoder = MessageDecoder()
        self._transport: asyncio.Transport | None = None
        self._unsent = bytearray()
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._closing = False
        self._given_up = False
        self._heartbeat = Heartbeat(
            timeout=timeout,
            beat=self._ping,
            on_silence=lambda: self._on_silence(timeout),
            suspect_after=SUSPECT_AFTER,
            on_suspect=self._on_suspect,
        )
        self._starting: asyncio.TimerHandle | None = None
        if new:
            patience = max(timeout, _START_TIMEOUT)
            self._starting = self._loop.call_later(patience, self._on_silence, patience)
        else:
            self._heartbeat.start()
        self._hello = self._expect_answer(hello)
        self._connecting = self._loop.create_task(self._connect(path))

    def send(self, request: Request) -> None:
        """Keep a request that has no reply until `flush`."""
        self._unsent += encode_message(encode_request(request))

    def poll(self, after: int) -> None:
        """Ask for the next batch with `flush`."""
        self.send(Poll(after))

    async def ask(self, request: Request) -> dict[str, Any]:
        """Send a request and return its reply; raise ConnectionError if the agent goes away."""
        return await self._expect_answer(request)

    async def hello(self) -> dict[str, Any] | None:
        """Return what the agent says of itself; None if it is not there."""
        try:
            return await asyncio.shield(self._hello)
        except ConnectionError:
            return None

    async def wait_closed(self, timeout: float) -> None:
        """Wait up to `timeout` seconds until the agent has closed its end; then close ours."""
        self._closing = True
        try:
            await asyncio.wait_for(self._closed.wait(), timeout)
        except TimeoutError:
            pass
        self._heartbeat.stop()
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Close the connection at once, without a word to the listener."""
        self._closing = True
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._end("the connection was closed")

    async def why_lost(self, reason: str) -> str:
        """Return a better reason than the socket's, if there is one."""
        return reason

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send what was kept."""
        self._transport = cast(asyncio.Transport, transport)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Pass batches to the listener, other replies to the caller that waits; ignore an agent that was given up."""
        if self._closed.is_set():
            return
        self._heartbeat.start()
        self._heartbeat.heard()
        if self._starting is not None:
            self._starting.cancel()
        for message in self._decoder.feed(data):
            if "events" in message:
                events = decode_events(message["events"])
                self._listener.on_batch(self._agent, events, message["cursor"])
            elif (answer := self._answers.pop(message.get("id", 0), None)) is not None:
                if not answer.done():
                    answer.set_result(message)
            elif "pong" not in message:
                _log.warning("agent %s: %s", self._agent, message.get("error", message))

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the agent is gone or has closed the connection."""
        self._end(f"its agent closed the connection ({exc})" if exc else "its agent is gone")

    def flush(self) -> None:
        """Write what was sent so far, if connected."""
        if self._transport is None:
            return
        if self._unsent and not self._transport.is_closing():
            self._transport.write(bytes(self._unsent))
        self._unsent.clear()

    def _expect_answer(self, request: Request) -> asyncio.Future[dict[str, Any]]:
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        if self._closed.is_set():
            answer.set_exception(ConnectionError("the agent is gone"))
            return answer
        number = next(self._ids)
        self._answers[number] = answer
        self._unsent += encode_message({**encode_request(request), "id": number})
        self.flush()
        return answer

    async def _connect(self, path: Path) -> None:
        try:
            await self._loop.create_unix_connection(lambda: self, str(path))
        except OSError as error:
            self._end(f"its agent cannot be reached ({error})")

    def _ping(self) -> None:
        self.send(Ping())
        self.flush()

    def _on_suspect(self, suspect: bool) -> None:
        if not self._closing:
            self._listener.on_silent(self._agent, suspect)

    def _on_silence(self, patience: float) -> None:
        """Give the agent up: kill it and ignore what it may still send."""
        if self._closed.is_set():
            return
        self._given_up = True
        self.kill()
        if self._transport is not None:
            self._transport.abort()
        self._end(f"its agent gave no sign of life for {patience:g} s")

    def _end(self, reason: str) -> None:
        self._closed.set()
        self._heartbeat.stop()
        if self._starting is not None:
            self._starting.cancel()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionError(reason))
                answer.exception()  # mark it as seen: there may be no waiter
        self._answers.clear()
        if not self._closing:
            self._closing = True
            self._loop.create_task(self._tell_lost(reason))

    async def _tell_lost(self, reason: str) -> None:
        self._listener.on_lost(self._agent, await self.why_lost(reason))
