"""A connection to an agent that is a Ray actor.

Messages travel through a socket if the agent is on the node of this process, and otherwise, or when the socket breaks,
as calls of the actor. What is flushed together leaves in one call, with the poll if one is due: a trial costs one
call. Files always travel by calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...trial_agent import (
    Batch,
    Ended,
    Event,
    FilePart,
    Hello,
    Kill,
    Message,
    Pause,
    Poll,
    ReadFile,
    Reply,
    Request,
    Shutdown,
    Start,
    decode_events,
    encode_request,
    from_bytes,
    to_bytes,
)
from ..agents import AgentLink, Listener, attempts_in
from ..socket_link import SocketLink
from ..tasks import SUSPECT_AFTER, Heartbeat, Tasks, in_daemon_thread
from .actor_calls import ActorCalls, kill_actor, ray_errors, reason_of
from .agent_files import AgentFiles
from .file_transfer import AgentLocation

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

# How long (s) after the grace of its trial an agent that was asked to shut down is killed.
_SHUTDOWN_MARGIN = 2.0
_KILL_TIMEOUT = 10.0


class RayLink(AgentLink, Listener):
    """Talks to the actor that `finding` results in; a `new` actor was just made and runs no trials.

    A connected agent that is silent for `timeout` seconds is given up. `sockets` is the directory for sockets of agents
    on this node; without it there is none.
    """

    def __init__(
        self,
        *,
        agent: str,
        finding: Awaitable[Any],
        hello: Hello,
        listener: Listener,
        files: AgentFiles,
        timeout: float = 10.0,
        new: bool = False,
        sockets: Path | None = None,
    ) -> None:
        self._agent = agent
        self._hello = hello
        self._listener = listener
        self._files = files
        self._is_new = new
        self._timeout = timeout
        self._sockets = sockets
        self._node_socket: NodeSocketLink | None = None
        self._is_suspect = False
        self._heartbeat = Heartbeat(
            timeout=timeout,
            beat=self._beat,
            on_silence=self._on_silence,
            suspect_after=SUSPECT_AFTER,
            on_suspect=self._on_suspect,
        )
        self._tasks = Tasks(listener.on_failure)
        self._calls = ActorCalls(agent, self._tasks, self._heartbeat, self._on_failed_call)
        self._session = secrets.token_hex(4)
        self._number = 0
        self._unsent: list[Request] = []
        self._poll_after: int | None = None
        self._is_bringing = False
        self._settled = asyncio.Event()  # it is connected, or lost before that
        self._finding = self._tasks.start(self._find(finding))

    @property
    def is_connected(self) -> bool:
        """Whether the agent has replied and is not lost."""
        return self._settled.is_set() and not self._calls.gone.is_set()

    @property
    def is_anothers(self) -> bool:
        """Whether another manager has taken over the agent."""
        return self._files.is_anothers

    async def located(self) -> AgentLocation | None:
        """Wait for the agent and return where it is; None if it is lost."""
        await self._settled.wait()
        return None if self._calls.gone.is_set() else self._files.where

    def send(self, request: Request) -> None:
        """Keep a request that has no reply until `flush`."""
        if isinstance(request, Kill) and self._take_back(request):
            return
        self._unsent.append(request)

    def poll(self, after: int) -> None:
        """Ask for the next batch with `flush`."""
        self._poll_after = after

    async def ask(self, request: ReadFile) -> FilePart:
        """Send a request and return its reply; raise ConnectionError if the agent goes away."""
        await self._settled.wait()
        if self._calls.gone.is_set():
            raise ConnectionError("the agent is gone")
        try:
            return await self._calls.reply("ask", encode_request(request))
        except ray_errors().RayError as error:
            raise ConnectionError(reason_of(error)) from error

    def kill(self) -> None:
        """Kill the actor's process."""
        self._tasks.start(self._kill())

    async def close(self, grace: float) -> None:
        """Ask the agent to shut down, kill it if it does not, and return when its process is gone."""
        self._calls.is_closing = True
        self._make_calls()  # the actor must know that it is to leave
        self.send(Shutdown())
        self.flush()
        # An actor that still waits for its resources runs no trial, so it needs no grace.
        patience = grace + _SHUTDOWN_MARGIN if self._settled.is_set() else 0.0
        if not await self._wait_gone(patience):
            await self._kill()
            if not await self._wait_gone(_KILL_TIMEOUT):
                self.lose("it does not end")  # a call after this process has left Ray would end it
        await self._tasks.wait(_KILL_TIMEOUT)

    async def _find(self, finding: Awaitable[Any]) -> None:
        try:
            self._calls.actor = await finding
        except (ray_errors().RayError, ValueError, TypeError, RuntimeError, OSError) as error:
            self.lose(reason_of(error))
            return
        if not self._is_new:
            self._heartbeat.start()  # it runs already and has no reason to be silent
        # Calls may overtake each other, so nothing else is sent before the session has begun.
        sockets = None if self._sockets is None else str(self._sockets)
        hello = encode_request(self._hello)
        self._calls.expect(self._meet, "connect", self._session, hello, sockets)

    def _meet(self, where: AgentLocation) -> None:
        _log.debug("agent %s: %s", self._agent, where)
        self._heartbeat.start()
        # One call always waits in the actor and fails when the actor's process ends.
        self._calls.expect(lambda nothing: self.be_replaced(), "until_replaced", self._session)
        self._start_task(self._get_ready(where), self._become_ready)

    async def _get_ready(self, where: AgentLocation) -> None:
        await self._files.meet(self._calls.reply, where)
        hello = await self._calls.reply("ask", encode_request(self._hello))
        self._listener.on_met(self._agent, *attempts_in(hello))
        if where.socket is not None and where.is_this_node:
            self._node_socket = NodeSocketLink(
                agent=self._agent,
                path=Path(where.socket),
                hello=self._hello,
                listener=self,
                timeout=self._timeout,
                kill=self._on_silence,
            )
            if await self._node_socket.is_open():
                self._heartbeat.stop()  # the socket has its own

    def _become_ready(self, nothing: None) -> None:
        self._settled.set()
        self.flush()

    def on_batch(self, agent: str, events: Sequence[Event], cursor: int) -> None:
        """Take a batch from the socket."""
        self._pass_on(events, cursor)

    def on_silent(self, agent: str, is_silent: bool) -> None:
        """Pass on that the socket is silent, or no longer."""
        self._on_suspect(is_silent)

    def on_failure(self, error: Exception) -> None:
        """Pass on a failure of the socket."""
        self._listener.on_failure(error)

    def on_lost(self, agent: str, reason: str) -> None:
        """Make calls from now on; they fail if the socket has closed because the agent is gone."""
        _log.debug("agent %s: makes calls: %s", self._agent, reason)
        self._make_calls()
        self.flush()

    def _make_calls(self) -> None:
        """Stop using the socket, and send again what the agent may not have handled: it does nothing twice."""
        if self._node_socket is None:
            return
        node_socket, self._node_socket = self._node_socket, None
        node_socket.drop()
        polls = [request for request in node_socket.unhandled if isinstance(request, Poll)]
        self._unsent[:0] = [request for request in node_socket.unhandled if not isinstance(request, Poll)]
        if polls and self._poll_after is None:
            self._poll_after = polls[-1].after
        self._heartbeat.start()
        if self._is_suspect:
            self._on_suspect(False)

    def be_replaced(self) -> None:
        """Leave the agent to another manager."""
        self._files.leave_alone()
        self.lose("another manager has taken over its agent")

    def _beat(self) -> None:
        self._calls.expect(lambda nothing: None, "beat")

    def _on_suspect(self, suspect: bool) -> None:
        self._is_suspect = suspect
        if not self._calls.is_closing:
            self._listener.on_silent(self._agent, suspect)

    def _on_silence(self) -> None:
        self.kill()
        self.lose(f"its agent gave no sign of life for {self._timeout:g} s")

    def _take_back(self, kill: Kill) -> bool:
        """End a trial without starting it if its agent is not there yet."""
        key = kill.trial, kill.attempt
        for request in self._unsent:
            if self._is_new and isinstance(request, Start) and (request.trial, request.attempt) == key:
                self._unsent.remove(request)
                self._tasks.soon(self._listener.on_batch, self._agent, [never_started(kill)], 0)
                return True
        return False

    def flush(self) -> None:
        """Send what was kept, once the agent is there and has the files that it needs for that."""
        if not self.is_connected or self._is_bringing:
            return
        if self._files.wants(self._unsent):
            self._is_bringing = True
            self._start_task(self._files.bring_for(self._calls.reply, list(self._unsent)), self._end_bringing)
            return
        requests, self._unsent = [self._files.localized(request) for request in self._unsent], []
        after, self._poll_after = self._poll_after, None
        if self._node_socket is not None:
            for request in requests:
                self._node_socket.send(request)
            if after is not None:
                self._node_socket.poll(after)
            self._node_socket.flush()
        elif requests or after is not None:
            self._call([encode_request(request) for request in requests], after)

    def _end_bringing(self, nothing: None) -> None:
        self._is_bringing = False
        self.flush()

    def _call(self, messages: list[Message], after: int | None) -> None:
        packet: list[Any] = [self._session, self._number, messages]
        self._number += 1
        if after is None:
            self._calls.expect(lambda reply: self._log_errors(from_bytes(reply)), "tell", to_bytes(packet))
        else:
            packet.append(after)
            self._calls.expect(self._take_batch, "poll", to_bytes(packet))

    def _on_failed_call(self, error: BaseException) -> None:
        if isinstance(error, ray_errors().RayTaskError):
            self.kill()  # a fault of Pitchpipe: the results of what it runs would be lost
        self.lose(reason_of(error))

    def _take_batch(self, answer: bytes) -> None:
        batch: Batch = from_bytes(answer)
        self._log_errors(batch.get("errors", []))
        events, cursor = decode_events(batch["events"]), batch["cursor"]
        if events:
            self._pass_on(events, cursor)
        elif self._poll_after is None:
            self.poll(cursor)
            self.flush()

    def _pass_on(self, events: Sequence[Event], cursor: int) -> None:
        if self._files.is_away:
            fetching = self._files.fetch_for(self._calls.reply, events)
            self._start_task(fetching, lambda arrived: self._listener.on_batch(self._agent, arrived, cursor))
        else:
            self._listener.on_batch(self._agent, events, cursor)

    def _start_task(self, work: Coroutine[Any, Any, _Result], then: Callable[[_Result], None]) -> None:
        """Do `work`, and `then` the rest unless the agent is lost meanwhile."""

        async def do() -> None:
            try:
                result = await work
            except (ray_errors().RayError, OSError) as error:
                self.lose(reason_of(error))
            else:
                if not self._calls.gone.is_set():
                    then(result)

        self._tasks.start(do())

    def _log_errors(self, errors: list[Reply]) -> None:
        for error in errors:
            _log.warning("agent %s: %s", self._agent, error.get("error", error))

    async def _kill(self) -> None:
        await asyncio.wait((self._finding,), timeout=_KILL_TIMEOUT)
        if (actor := self._calls.actor) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(in_daemon_thread(lambda: kill_actor(actor)), _KILL_TIMEOUT)

    async def _wait_gone(self, timeout: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._calls.gone.wait(), timeout)
        return self._calls.gone.is_set()

    def lose(self, reason: str) -> None:
        """Give the agent up: it is gone or out of reach."""
        if self._calls.gone.is_set():
            return
        self._calls.gone.set()
        self._settled.set()
        self._heartbeat.stop()
        self._finding.cancel()
        if self._node_socket is not None:
            self._node_socket.drop()
            self._node_socket = None  # its end may be reported later, and would start the heartbeat again
        if not self._calls.is_closing:
            self._tasks.start(self._finalize_lost(reason))

    async def _finalize_lost(self, reason: str) -> None:
        """Report the loss after all that the agent left has ended: its spools are read next."""
        try:
            await self._files.sweep()
        except Exception as error:  # noqa: BLE001  (whatever it is, the trial has ended)
            _log.warning("cannot sweep up after agent %s: %s", self._agent, error)
        self._listener.on_lost(self._agent, reason)


def never_started(request: Kill | Pause) -> Ended:
    """Return the end of an attempt that was stopped before its agent was asked to start it."""
    error = "stopped before it had started"
    return Ended(trial=request.trial, attempt=request.attempt, error=error, time=time.time())


class NodeSocketLink(SocketLink):
    """The socket of an agent on this node, which costs much less than calls: carries the messages of a `RayLink`.

    When it breaks, calls carry them, and those that may not have arrived.
    `kill` is called for an agent that has been silent for `timeout` seconds.
    """

    is_made_again = False

    def __init__(
        self,
        *,
        agent: str,
        path: Path,
        hello: Hello,
        listener: Listener,
        timeout: float,
        kill: Callable[[], None],
    ) -> None:
        super().__init__(agent=agent, path=path, hello=hello, listener=listener, timeout=timeout)
        self._kill = kill

    async def is_open(self) -> bool:
        """Wait until the agent has replied, or cannot be reached here; return whether it has replied."""
        said = await self.hello()
        self._path.unlink(missing_ok=True)  # it is for one manager
        return said is not None and not self._closing

    def kill(self) -> None:
        """Give the agent up."""
        self._kill()

    async def close(self, grace: float) -> None:
        """Close the connection; the agent stays."""
        del grace
        self.drop()
