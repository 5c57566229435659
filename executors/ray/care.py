"""What there is to do around an agent on Ray besides talking to it: its files, and what it leaves behind.

An agent that does not see the experiment's folder is brought what its trials start from; what they leave is fetched
before the manager hears of it: a checkpoint that is told of, and everything when a trial ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...runner import AttemptOrder
from ...trial_agent import Ended, Event, Request, Saved, Start
from ..agents import spool_path
from ..base import RunSetup
from ..daemon_thread import in_daemon_thread
from .files import forget_checkpoints, pack, trial_files, unpack
from .nodes import Node
from .strays import Remains, Whereabouts, sweep, sweep_there

__all__ = ["AgentCare"]

_log = logging.getLogger(__name__)


class AgentCare:
    """Looks after one agent. `orders` tells its attempts, `nodes` where Ray tasks can run now."""

    def __init__(
        self,
        agent: str,
        setup: RunSetup,
        orders: Callable[[], Sequence[AttemptOrder]],
        nodes: Callable[[], Iterable[Node]],
    ) -> None:
        self.where: Whereabouts | None = None
        self._agent = agent
        self._setup = setup
        self._orders = orders
        self._nodes = nodes
        self._brought: set[tuple[str, int]] = set()
        self._is_anothers = False

    @property
    def is_away(self) -> bool:
        """Does the agent work in a folder of its own?"""
        return self.where is not None and self.where.folder is not None

    async def meet(self, actor: Any, where: Whereabouts) -> None:
        """Take note of where the agent is, and bring the trial function if it cannot see it."""
        self.where = where
        if self.is_away and self._setup.run.is_function:
            await self._bring(actor, [Path(self._setup.run.path).name])

    def wants(self, requests: Iterable[Request]) -> bool:
        """Whether files must be brought before these requests are sent."""
        return self.is_away and any(True for _ in self._wanted(requests))

    async def bring_for(self, actor: Any, requests: Sequence[Request]) -> None:
        """Bring the checkpoints from which attempts are to start; the attempt itself fails if one is missing."""
        wanted = dict(self._wanted(requests))
        self._brought.update(wanted)
        await self._bring(actor, list(wanted.values()))

    async def fetch_for(self, actor: Any, events: Iterable[Event]) -> None:
        """Fetch the files of which these events tell."""
        orders = {(order.trial_id, order.attempt): order for order in self._orders()}
        for event in events:
            order = orders.get((event.trial, event.attempt))
            if order is None:
                continue
            folder = trial_files(order.sequence_id)
            if isinstance(event, Saved):
                await self._fetch(actor, f"{folder}/checkpoints/{event.name}", forget=False)
            elif isinstance(event, Ended):
                kept = await _answer(actor.checkpoints.remote(folder))
                await self._fetch(actor, folder, forget=True)
                if (
                    kept is not None
                ):  # else all of it was fetched before, by a manager that did not come to say so
                    forget_checkpoints(self._setup.folder / folder, order.attempt, kept)

    def leave_alone(self) -> None:
        """The agent is another manager's now: what it runs is none of our business."""
        self._is_anothers = True

    async def sweep(self) -> None:
        """Make sure that nothing of the lost agent reports any more, and fetch what it has left."""
        if self._is_anothers:
            return
        remains = self._remains()
        if self.where is None:
            await self._sweep_everywhere(remains)
        elif self.where.is_this_machine:
            await self._take(await asyncio.to_thread(sweep, remains, self.where))
        else:
            await self._sweep_nodes(
                remains, [each for each in self._nodes() if each.node_id == self.where.node]
            )

    async def _sweep_everywhere(self, remains: Remains) -> None:
        """Nobody knows where the agent was: look here, and once on every other machine."""
        await self._take(await asyncio.to_thread(sweep, remains, None))
        hosts = {node.host: node for node in self._nodes()}
        here = Whereabouts.here(None).host
        await self._sweep_nodes(remains, [node for host, node in hosts.items() if host != here])

    async def _sweep_nodes(self, remains: Remains, nodes: Sequence[Node]) -> None:
        sweeps = (_there(remains, self.where, node.node_id) for node in nodes)
        for data in await asyncio.gather(*sweeps):
            await self._take(data)

    def _remains(self) -> Remains:
        folder, orders = self._setup.folder, self._orders()
        spools = {str(spool_path(self._setup, order).relative_to(folder)) for order in orders}
        names = {trial_files(order.sequence_id) for order in orders} | spools
        own = () if self._setup.run.is_function else sorted(spools)
        return Remains(self._agent, str(folder), own, sorted(names))

    def _wanted(self, requests: Iterable[Request]) -> Iterator[tuple[tuple[str, int], str]]:
        """Yield the attempts among these requests whose checkpoint is not there yet, with its path."""
        for request in requests:
            if isinstance(request, Start) and request.checkpoint is not None:
                key = request.trial, request.attempt
                if key not in self._brought:
                    yield key, request.checkpoint

    async def _bring(self, actor: Any, names: Sequence[str]) -> None:
        data = await asyncio.to_thread(pack, str(self._setup.folder), names)
        await _answer(actor.bring.remote(data))

    async def _fetch(self, actor: Any, name: str, *, forget: bool) -> None:
        await self._take(await _answer(actor.fetch.remote(name, forget)))

    async def _take(self, data: bytes) -> None:
        if data:
            await asyncio.to_thread(unpack, data, self._setup.folder)


async def _answer(call: Any) -> Any:
    return await asyncio.wrap_future(call.future())


async def _there(remains: Remains, where: Whereabouts | None, node: str) -> bytes:
    return await in_daemon_thread(lambda: sweep_there(remains, where, node))
