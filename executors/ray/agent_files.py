"""The files of an agent on Ray, and what it leaves behind.

An agent that does not see the experiment's folder is sent the files that its trials start from. What trials save is
fetched before the manager receives the event: a checkpoint once it is reported, and everything when a trial ends.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ...runner import AttemptOrder
from ...trial_agent import Ended, Event, Request, RunSpec, Saved, Start
from ..running_attempts import spool_path
from ..tasks import in_daemon_thread, in_thread_or_here
from ..trial_executor import RunSetup
from .actor_calls import ray_errors, reason_of
from .file_transfer import (
    AgentLocation,
    Leftovers,
    forget_checkpoints,
    pack,
    sweep,
    sweep_there,
    trial_files,
    unpack,
)
from .nodes import RayNode

_log = logging.getLogger(__name__)
_Call = Callable[..., Awaitable[Any]]
# How often (s) to look whether there is room again for the files that have arrived.
_TRY_AGAIN = 1.0


class AgentFiles:
    """Looks after one agent; `orders` returns its attempts, `nodes` those where Ray tasks can run now.

    It is the agent on the trial's node number `number`; the first one has the checkpoints. `call(method, ...)` calls
    the agent's actor, more than once if the connection breaks: each of these methods may be called again.
    """

    def __init__(
        self,
        agent: str,
        setup: RunSetup,
        orders: Callable[[], Sequence[AttemptOrder]],
        nodes: Callable[[], Iterable[RayNode]],
        number: int = 0,
    ) -> None:
        self.where: AgentLocation | None = None
        self.is_anothers = False
        self._agent = agent
        self._setup = setup
        self._orders = orders
        self._nodes = nodes
        self._brought: set[tuple[str, int]] = set()
        self._number = number

    @property
    def is_away(self) -> bool:
        """Whether the agent works in a folder of its own."""
        return self.where is not None and self.where.folder is not None

    async def meet(self, call: _Call, where: AgentLocation) -> None:
        """Note where the agent is, and bring the trial function if the agent cannot see it."""
        self.where = where
        if self.is_away and self._setup.run.is_function:
            await self._bring(call, [Path(self._setup.run.path).name])

    def localized(self, request: Request) -> Request:
        """Return a request with the agent's folders in place of the manager's."""
        if self.where is None or not isinstance(request, RunSpec):
            return request
        if self.where.code_directory is not None:
            request = replace(request, code_directory=self.where.code_directory)
        if (folder := self.where.folder) is not None:
            path = os.path.join(folder, os.path.basename(request.path))
            request = replace(request, folder=folder, path=path)
        return request

    def wants(self, requests: Iterable[Request]) -> bool:
        """Return whether files must be brought before these requests are sent."""
        return self.is_away and any(True for _ in self._wanted(requests))

    async def bring_for(self, call: _Call, requests: Sequence[Request]) -> None:
        """Bring the checkpoints from which attempts start; if one is missing, the attempt itself fails."""
        wanted = dict(self._wanted(requests))
        self._brought.update(wanted)
        await self._bring(call, list(wanted.values()))

    async def fetch_for(self, call: _Call, events: Iterable[Event]) -> list[Event]:
        """Fetch the files that these events announce; return the events without the checkpoints that did not arrive.

        The agent has removed such a checkpoint because it has saved a later one.
        """
        orders = {(order.trial_id, order.attempt): order for order in self._orders()}
        arrived: list[Event] = []
        for event in events:
            order = orders.get((event.trial, event.attempt))
            folder = None if order is None else trial_files(order.sequence_id)
            if order is not None and folder is not None and isinstance(event, Ended):
                await self._fetch_all(call, folder, order.attempt)
            elif folder is not None and isinstance(event, Saved):
                name = f"{folder}/checkpoints/{event.name}"
                await self._fetch(call, name)
                if not (self._setup.folder / name).is_dir():
                    continue
            arrived.append(event)
        return arrived

    async def _fetch_all(self, call: _Call, folder: str, attempt: int) -> None:
        """Fetch the files of an attempt that has ended; they are removed there when they have arrived."""
        kept = None
        if self._number:
            await self._try(folder, call("forget", f"{folder}/checkpoints"))  # brought at the start
        else:
            kept = await self._try(folder, call("checkpoints", folder))
        if await self._fetch(call, folder):
            await self._try(folder, call("forget", folder))
        # None: an earlier manager has fetched everything, but ended before it committed the event.
        if kept is not None:
            forget_checkpoints(self._setup.folder / folder, attempt, kept)

    def leave_alone(self) -> None:
        """Leave the agent's trials alone: another manager has taken it over."""
        self.is_anothers = True

    async def sweep(self) -> None:
        """End everything of the lost agent that may still report, and fetch the files that it has left."""
        if self.is_anothers:
            return
        leftovers = self._leftovers()
        if self.where is None:
            await self._sweep_everywhere(leftovers)
        elif self.where.is_this_machine:
            await self._take(await in_thread_or_here(partial(sweep, leftovers, self.where)))
        else:
            there = [node for node in self._nodes() if node.node_id == self.where.node]
            await self._sweep_nodes(leftovers, there)

    async def _sweep_everywhere(self, leftovers: Leftovers) -> None:
        """Sweep this machine, and one node of every other: the agent's place is unknown."""
        await self._take(await in_thread_or_here(partial(sweep, leftovers, None)))
        hosts = {node.host: node for node in self._nodes()}
        here = AgentLocation.here(None).host
        await self._sweep_nodes(leftovers, [node for host, node in hosts.items() if host != here])

    async def _sweep_nodes(self, leftovers: Leftovers, nodes: Sequence[RayNode]) -> None:
        sweeps = [partial(sweep_there, leftovers, self.where, node.node_id) for node in nodes]
        for data in await asyncio.gather(*map(in_daemon_thread, sweeps)):
            await self._take(data)

    def _leftovers(self) -> Leftovers:
        folder, orders = self._setup.folder, self._orders()
        spools = {str(spool_path(self._setup, order, self._number).relative_to(folder)) for order in orders}
        names = {trial_files(order.sequence_id) for order in orders} | spools
        own = () if self._setup.run.is_function else sorted(spools)
        return Leftovers(self._agent, str(folder), own, sorted(names))

    def _wanted(self, requests: Iterable[Request]) -> Iterator[tuple[tuple[str, int], str]]:
        """Yield the attempts among these requests whose checkpoint is not there yet, with its path."""
        for request in requests:
            if isinstance(request, Start) and request.checkpoint is not None:
                key = request.trial, request.attempt
                if key not in self._brought:
                    yield key, request.checkpoint

    async def _bring(self, call: _Call, names: Sequence[str]) -> None:
        data = await in_thread_or_here(partial(pack, str(self._setup.folder), names))
        await call("bring", data)

    async def _fetch(self, call: _Call, name: str) -> bool:
        """Fetch a file or folder; return whether that was possible."""
        data = await self._try(name, call("fetch", name))
        if data is not None:
            await self._take(data)
        return data is not None

    async def _try(self, name: str, reply: Awaitable[Any]) -> Any:
        """Return a reply; if the call fails, warn and return None: the agent lives, and so do its other files."""
        try:
            return await reply
        except ray_errors().RayError as error:
            if isinstance(error, ray_errors().RayActorError):
                raise
            failed = isinstance(error, ray_errors().RayTaskError)
            why = reason_of(error) if failed else f"lost on the way ({type(error).__name__})"
            _log.warning("%s cannot be fetched from agent %s: %s", name, self._agent, why)
            return None

    async def _take(self, data: bytes) -> None:
        """Unpack files. On a full disk wait, as the whole experiment does; after another error do without them."""
        while data:
            try:
                await in_thread_or_here(partial(unpack, data, self._setup.folder))
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    _log.warning("files of agent %s cannot be kept: %s", self._agent, error)
                    return
                await asyncio.sleep(_TRY_AGAIN)
            else:
                return
