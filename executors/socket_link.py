"""A connection to an agent over its Unix socket: it is made again if it breaks, and notices a silent agent."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from ..protocol import Json
from ..store import runtime_directory
from ..trial_agent import (
    FilePart,
    Hello,
    HelloReply,
    MessageDecoder,
    Ping,
    Poll,
    ReadFile,
    Request,
    decode_events,
    encode_message,
    encode_request,
)
from .agents import AgentLink, Listener, attempts_in
from .tasks import START_TIMEOUT, SUSPECT_AFTER, Heartbeat, Tasks

_log = logging.getLogger(__name__)

# How long (s) to wait before an agent that cannot be reached just now is tried again; then twice as long, up to 1 s.
_TRY_AGAIN = 0.05
# How often a connection may break, without an event from the agent in between, before the agent is given up.
_BREAKS = 5


def agent_sockets(folder: Path) -> Path:
    """Return the directory of the sockets of an experiment's agents on this machine.

    Its name is a hash, because the path of a Unix socket is limited to 107 bytes.
    """
    return runtime_directory() / ("a-" + hashlib.blake2b(os.fsencode(folder), digest_size=6).hexdigest())


class SocketLink(AgentLink, asyncio.Protocol):
    """Connects, says hello, and passes messages; what is sent before it is connected is kept until then.

    A reply carries the id of its message; the reply to a poll is a batch of events. An agent that is silent for
    `timeout` seconds is given up; a `new` one has more time to say hello. If the connection breaks, it is made again:
    the agent keeps the events that were not acknowledged, and what it may not have handled is sent again, which is
    harmless.
    """

    is_made_again = True

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
        self._path = path
        self._greeting = replace(hello, session=secrets.token_hex(8))
        self._listener = listener
        self._tasks = Tasks(listener.on_failure)
        self._decoder = MessageDecoder()
        self._transport: asyncio.Transport | None = None
        self._unsent = bytearray()
        self._unhandled: list[Request] = []  # no later batch has shown that the agent has handled them
        self._answers: dict[int, tuple[Request, asyncio.Future[Json]]] = {}
        self._ids = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._closed = asyncio.Event()
        self._closing = False
        self._given_up = False
        self._is_met = False
        self._breaks = 0
        self._heartbeat = Heartbeat(
            timeout=timeout,
            beat=self._ping,
            on_silence=lambda: self._on_silence(timeout),
            suspect_after=SUSPECT_AFTER,
            on_suspect=self._on_suspect,
        )
        self._starting: asyncio.TimerHandle | None = None
        if new:
            patience = max(timeout, START_TIMEOUT)
            self._starting = self._tasks.later(patience, self._on_silence, patience)
        else:
            self._heartbeat.start()
        self._hello = self._expect_answer(self._greeting)
        self._connecting = self._tasks.start(self._connect())

    def send(self, request: Request) -> None:
        """Keep a request that has no reply until `flush`."""
        self._unsent += encode_message(encode_request(request))
        if not isinstance(request, Ping):
            self._unhandled.append(request)

    @property
    def unhandled(self) -> Sequence[Request]:
        """Requests that the agent may not have handled."""
        return self._unhandled

    def settle(self) -> None:
        """Note that a batch has come, the reply to the poll: the agent has handled what was sent before that."""
        polls = [number for number, request in enumerate(self._unhandled) if isinstance(request, Poll)]
        del self._unhandled[: polls[0] + 1 if polls else 0]

    def poll(self, after: int) -> None:
        """Ask for the next batch with `flush`."""
        self.send(Poll(after))

    async def ask(self, request: ReadFile) -> FilePart:
        """Send a request and return its reply; raise ConnectionError if the agent goes away."""
        return await self._expect_answer(request)

    async def hello(self) -> HelloReply | None:
        """Return what the agent says of itself; None if it is not there."""
        try:
            return await asyncio.shield(self._hello)
        except ConnectionError:
            return None

    async def wait_closed(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for the agent to close the connection; then close it here."""
        self._closing = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), timeout)
        self._heartbeat.stop()
        self._connecting.cancel()
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
                self.settle()
                self._breaks = 0
                self._listener.on_batch(self._agent, events, message["cursor"])
            elif (pending := self._answers.pop(message.get("id", 0), None)) is not None:
                self._take_answer(*pending, message)
            elif "pong" not in message:
                _log.warning("agent %s: %s", self._agent, message.get("error", message))

    def _take_answer(self, request: Request, answer: asyncio.Future[Json], message: Json) -> None:
        if request is self._greeting and "replaced" in message:
            self._end("another manager has taken over its agent")
        elif not answer.done():
            answer.set_result(message)
        if request is self._greeting and not self._is_met and not self._closing:
            self._is_met = True
            self._listener.on_met(self._agent, *attempts_in(message))

    def connection_lost(self, exc: Exception | None) -> None:
        """Connect again if the agent has said hello on the connection that is gone; else report that it is gone."""
        reason = f"its agent closed the connection ({exc})" if exc else "its agent is gone"
        self._transport = None
        has_greeted = self._hello.done() and not self._closed.is_set()
        if self._closing or not (self.is_made_again and has_greeted and self._breaks < _BREAKS):
            self._end(reason)
            return
        self._breaks += 1
        _log.debug("agent %s: the connection broke (%s) and is made again", self._agent, exc)
        self._decoder = MessageDecoder()
        self._say_again()
        self._connecting = self._tasks.start(self._connect())

    def _say_again(self) -> None:
        """Prepare what the next connection begins with: hello, and what the agent may not have handled."""
        self._unsent.clear()
        pending, self._answers = self._answers, {}
        self._hello = self._expect_answer(self._greeting)
        for number, (request, answer) in pending.items():
            self._answers[number] = request, answer
            self._unsent += encode_message({**encode_request(request), "id": number})
        for request in self._unhandled:
            self._unsent += encode_message(encode_request(request))

    def flush(self) -> None:
        """Write what was sent so far, if connected."""
        if self._transport is None:
            return
        if self._unsent and not self._transport.is_closing():
            self._transport.write(bytes(self._unsent))
        self._unsent.clear()

    def _expect_answer(self, request: Request) -> asyncio.Future[Json]:
        answer: asyncio.Future[Json] = self._loop.create_future()
        if self._closed.is_set():
            answer.set_exception(ConnectionError("the agent is gone"))
            return answer
        number = next(self._ids)
        self._answers[number] = request, answer
        self._unsent += encode_message({**encode_request(request), "id": number})
        self.flush()
        return answer

    async def _connect(self) -> None:
        """Connect; try again, until the agent has been silent for too long, unless it no longer listens."""
        delay = _TRY_AGAIN
        while True:
            try:
                await self._loop.create_unix_connection(lambda: self, str(self._path))
                return
            except OSError as error:
                if not self.is_made_again or isinstance(error, ConnectionRefusedError | FileNotFoundError):
                    why = "is gone" if self._is_met else f"cannot be reached ({error})"
                    self._end(f"its agent {why}")
                    return
                _log.debug("agent %s cannot be reached just now: %s", self._agent, error)
            await asyncio.sleep(delay)
            delay = min(2 * delay, 1.0)

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
        self._connecting.cancel()
        self.kill()
        if self._transport is not None:
            self._transport.abort()
        self._end(f"its agent gave no sign of life for {patience:g} s")

    def _end(self, reason: str) -> None:
        self._closed.set()
        self._heartbeat.stop()
        if self._starting is not None:
            self._starting.cancel()
        for _, answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionError(reason))
                answer.exception()  # mark it as seen: there may be no waiter
        self._answers.clear()
        if not self._closing:
            self._closing = True
            self._tasks.start(self._tell_lost(reason))

    async def _tell_lost(self, reason: str) -> None:
        """Report the loss, even if it is not known why, or what the agent left cannot be ended."""
        try:
            reason = await self.why_lost(reason)
        except Exception as error:  # noqa: BLE001  (whatever it is, the trial has ended)
            _log.warning("what agent %s has left cannot be looked for: %s", self._agent, error, exc_info=True)
        self._listener.on_lost(self._agent, reason)
