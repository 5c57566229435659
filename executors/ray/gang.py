"""A trial on several nodes: an agent on each, which start, stop and fail together and look like one agent.

The first one leads: its process of rank 0 reports for the trial. The others report only how they ended.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace

from ...trial_agent import Ended, Event, FilePart, Kill, Pause, ReadFile, Request, Start
from ..agents import AgentLink, Attempt, Listener
from ..tasks import Tasks
from .link import RayLink, never_started

# Below the ports that systems give to clients (Linux: from 32768), and above those of Ray's workers (to 19999).
_PORTS = range(20_000, 32_000)


def member_name(agent: str, node: int) -> str:
    """Return the name of the agent on a trial's node; that of the first is the gang's.

    >>> member_name("3-0", 0), member_name("3-0", 1)
    ('3-0', '3-0.1')
    """
    return f"{agent}.{node}" if node else agent


def port_of(start: Start) -> int:
    """Return the port at which the processes of an attempt meet, the same after a restart of the manager."""
    name = f"{start.trial}/{start.attempt}/{start.mark}".encode()
    return _PORTS[zlib.crc32(name) % len(_PORTS)]


class GangLink(AgentLink, Listener):
    """Talks to the agents of a trial's nodes; `connect` returns the link to one, `release` frees their resources."""

    def __init__(
        self,
        *,
        agent: str,
        nodes: int,
        connect: Callable[[int, Listener], RayLink],
        listener: Listener,
        release: Callable[[], Awaitable[None]],
        new: bool,
    ) -> None:
        self._agent = agent
        self._listener = listener
        self._release = release
        self._is_new = new
        self._names = {member_name(agent, node): node for node in range(nodes)}
        self._links = [connect(node, self) for node in range(nodes)]
        self._cursors = [0] * nodes
        self._silent: set[int] = set()
        self._gone: set[int] = set()
        self._reason = ""
        self._closing = False
        self._attempt: _Attempt | None = None
        self._tasks = Tasks(listener.on_failure)

    @property
    def is_connected(self) -> bool:
        """Whether all agents have replied and none is lost."""
        return all(link.is_connected for link in self._links)

    def send(self, request: Request) -> None:
        """Send a request to all agents; a start waits until it is known where they meet."""
        if isinstance(request, Start):
            self._attempt = _Attempt(request)
            self._tasks.start(self._begin(self._attempt))
            return
        attempt = self._attempt
        if attempt is not None and isinstance(request, Kill | Pause) and attempt.is_of(request):
            attempt.is_stopping = True
            if not attempt.is_sent:
                self._stop_unsent(attempt, request)
                return
        self._send_all(request)

    def poll(self, after: int) -> None:
        """Ask the first agent for its next events: those of the others are asked for here."""
        self._links[0].poll(after)

    def flush(self) -> None:
        """Send to each agent what was kept."""
        for link in self._links:
            link.flush()

    async def ask(self, request: ReadFile) -> FilePart:
        """Ask one agent after another until one has what is asked for: each has files of its own."""
        answer: FilePart = {}
        for link in self._links:
            answer = await link.ask(request)
            if "error" not in answer:
                break
        return answer

    def kill(self) -> None:
        """Kill all agents."""
        for link in self._links:
            link.kill()

    async def close(self, grace: float) -> None:
        """End all agents, and release what they hold."""
        self._closing = True
        self._tasks.cancel()
        try:
            await asyncio.gather(*(link.close(grace) for link in self._links))
        finally:
            await self._release()

    def lose(self, reason: str) -> None:
        """Give all agents up."""
        for link in self._links:
            link.lose(reason)

    def on_batch(self, agent: str, events: Sequence[Event], cursor: int) -> None:
        """Pass on what the first agent reports, but for the end: that comes when all have ended."""
        node, attempt = self._names[agent], self._attempt
        self._cursors[node] = cursor
        ends = (event for event in events if isinstance(event, Ended))
        end = None if attempt is None else next(filter(attempt.is_of, ends), None)
        if attempt is None or end is None:
            if node == 0:
                self._listener.on_batch(self._agent, events, cursor)
            elif any(each.e == "forgotten" for each in events):
                self.kill()  # it ran on that node before
            else:
                self._links[node].poll(cursor)
                self._links[node].flush()
            return
        # The others are not polled again before the next start: until then they repeat this end to a new manager.
        if node == 0:
            attempt.last = events
        attempt.ended[node] = end
        if attempt.failed and not attempt.is_stopping:
            for other in set(range(len(self._links))) - attempt.ended.keys():
                self._links[other].send(Kill(end.trial, end.attempt))
                self._links[other].flush()
        if len(attempt.ended) == len(self._links):
            self._attempt = None
            self._listener.on_batch(self._agent, attempt.last_events(), self._cursors[0])

    def on_met(self, agent: str, running: Collection[Attempt], seen: Collection[Attempt]) -> None:
        """Pass on what the first agent runs and has run: it reports for all."""
        if self._names[agent] == 0:
            self._listener.on_met(self._agent, running, seen)

    def on_failure(self, error: Exception) -> None:
        """Pass on a failure of the connection to one agent."""
        self._listener.on_failure(error)

    def on_silent(self, agent: str, is_silent: bool) -> None:
        """Pass on that one is silent, and that all respond again."""
        were_silent = bool(self._silent)
        (self._silent.add if is_silent else self._silent.discard)(self._names[agent])
        if bool(self._silent) != were_silent:
            self._listener.on_silent(self._agent, is_silent)

    def on_lost(self, agent: str, reason: str) -> None:
        """End the other agents, too; the trial is lost when all are gone."""
        node = self._names[agent]
        if not self._gone:
            self._reason = f"{reason} (node {node} of the trial)" if node else reason
            for other in self._links:
                if self._links[node].is_anothers:
                    other.be_replaced()
                else:
                    other.kill()
                    other.lose("another agent of its trial is gone")
        self._gone.add(node)
        if len(self._gone) == len(self._links):
            self._tasks.start(self._finalize_lost())

    async def _finalize_lost(self) -> None:
        if not self._links[0].is_anothers:
            await self._release()
        self._listener.on_lost(self._agent, self._reason)

    async def _begin(self, attempt: _Attempt) -> None:
        """Send the start to all agents when the first one is known to be somewhere."""
        where = await self._links[0].located()
        if where is None or self._attempt is not attempt:
            return
        attempt.is_sent = True
        master = f"{where.address}:{port_of(attempt.start)}"
        for node, link in enumerate(self._links):
            link.send(replace(attempt.start, node=node, master=master))
            if node:
                link.poll(self._cursors[node])
        for request in attempt.unsent:
            self._send_all(request)
        self.flush()

    def _stop_unsent(self, attempt: _Attempt, request: Kill | Pause) -> None:
        """End an attempt that was not sent yet; agents of an earlier manager, which may run it, are asked later."""
        if not self._is_new:
            attempt.unsent.append(request)
            return
        self._attempt = None
        self._tasks.soon(self._listener.on_batch, self._agent, [never_started(request)], self._cursors[0])

    def _send_all(self, request: Request) -> None:
        for link in self._links:
            link.send(request)


class _Attempt:
    """An attempt on several nodes, and how it has ended on some of them."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.is_sent = False
        self.is_stopping = False
        self.unsent: list[Request] = []
        self.ended: dict[int, Ended] = {}
        self.last: Sequence[Event] = ()  # of the first agent, with its end

    def is_of(self, other: Ended | Kill | Pause) -> bool:
        return (other.trial, other.attempt) == (self.start.trial, self.start.attempt)

    @property
    def failed(self) -> dict[int, Ended]:
        """The ends by node that are failures of their own."""
        return {
            node: end
            for node, end in self.ended.items()
            if not end.killed and not end.paused and (end.exit_code or end.signal or end.error)
        }

    def last_events(self) -> list[Event]:
        """Return the last events of the first agent, with the end of the whole attempt.

        That is its earliest failure. A stopped attempt ends as stopped if any of its nodes does: the first one may end
        by itself when the others are gone.
        """
        if self.is_stopping:
            stopped = (end for end in self.ended.values() if end.killed or end.paused)
            return self._ended_as(next(stopped, self.ended[0]))
        if not self.failed:
            return list(self.last)
        node, first = min(self.failed.items(), key=lambda item: item[1].time)
        if node == 0:
            return list(self.last)
        error = f"{first.error or 'no error message'}\n(on node {node} of {len(self.ended)})"
        return self._ended_as(replace(first, error=error, killed=False))

    def _ended_as(self, other: Ended) -> list[Event]:
        end = replace(
            self.ended[0],
            exit_code=other.exit_code,
            signal=other.signal,
            error=other.error,
            out_of_memory=other.out_of_memory,
            infra=other.infra,
            killed=other.killed,
            paused=other.paused,
        )
        return [end if each is self.ended[0] else each for each in self.last]
