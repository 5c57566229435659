"""Runs trials in agents that are Ray actors, on a cluster or on the user's private Ray."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...protocol import JsonObject
from ...runner import ExecutorFailed, Ledger, Totals, TotalsChanged, Wait
from ...trial_agent import Hello
from ..agents import AgentLink, AgentTrialExecutor, Listener
from ..errors import ExecutorError
from ..private_ray import named_actors
from ..socket_link import agent_sockets
from ..tasks import in_daemon_thread, in_thread_or_here
from ..trial_executor import Deliver, RunSetup
from .actor_calls import kill_actor, ray_errors
from .agent_files import AgentFiles
from .file_transfer import SharedMark
from .gang import GangLink, member_name
from .link import RayLink
from .nodes import RayNode, actor_options, make_group, remove_group, too_few_nodes, totals_of
from .ray_agent import AgentSetup, RayAgent
from .ray_connection import ConnectionListener, RayConnection

_log = logging.getLogger(__name__)

# A poll, a watching call, and others; a dead manager's poll occupies a thread for a while.
_CONCURRENT_CALLS = 8
# After so many seconds an agent that waits for resources gets those of an idle one.
_END_IDLE_AFTER = 2.0
_RELEASE_TIMEOUT = 5.0
_OnRay = RayLink | GangLink


class RayTrialExecutor(AgentTrialExecutor, ConnectionListener):
    """A `TrialExecutor` over Ray.

    `address` is a cluster's ("host:port", or "auto" for the one that runs here). None means the private Ray, which
    has `resources` (by Ray's names; None: those of the machine) and stays for `idle_timeout` seconds after its last
    use. `runtime_env` is Ray's, for all agents; it doubles their start-up time. If this process is connected to a
    Ray already, that one is used and stays connected. The executor waits for a cluster that is gone, for at most
    `reconnect_timeout` seconds.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        idle_timeout: float = 300.0,
        runtime_env: JsonObject | None = None,
        resources: Mapping[str, float] | None = None,
        reconnect_timeout: float = 600.0,
    ) -> None:
        super().__init__()
        self._runtime_env = runtime_env
        self._is_open = False
        self._totals = Totals(amounts={})
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._waiting_for_ray: set[str] = set()
        self._unreported: dict[str, AgentLink] = {}  # silent: does their cluster reply?
        self._reporting: asyncio.Task[None] | None = None
        self._ending_idle: asyncio.TimerHandle | None = None
        self._connection = RayConnection(
            address,
            self,
            idle_timeout=idle_timeout,
            reconnect_timeout=reconnect_timeout,
            runtime_env=runtime_env,
            resources=resources,
        )

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Join Ray, starting it if necessary; agents are made when trials need them."""
        self._setup, self._deliver = setup, deliver
        (setup.folder / "agents").mkdir(exist_ok=True)
        try:
            await self._connection.open(setup.experiment_id)
            totals = totals_of(self._connection.nodes)
            if self._connection.is_private and (why := Ledger(totals).infeasible(setup.request)) is not None:
                raise ExecutorError(f"no trial can ever run on this machine: {why}")
        except BaseException:
            await self._connection.close()
            raise
        self._is_open = True
        self._mark = SharedMark(setup.folder)
        self._sockets = _make_sockets(setup.folder)
        self._totals = totals
        return totals

    def prepare(self, agents: Sequence[str]) -> None:
        """Make agents ahead, but no more than fit at once: idle agents keep their resources."""
        ledger, fitting = Ledger(self._totals), 0
        while fitting < len(agents) and ledger.take(str(fitting), self.setup.request) is not None:
            fitting += 1
        super().prepare(agents[:fitting])

    async def close(self) -> None:
        """End all agents of the experiment, also those of an earlier manager, and leave Ray."""
        if not self._is_open:
            return
        self._is_open = False
        if self._ending_idle is not None:
            self._ending_idle.cancel()
        if not self._connection.is_up:
            await self._connection.stop_waiting()
            self._closing = True
            self.on_agents_gone("the executor is closed")  # they cannot be asked to shut down
        await super().close()
        await asyncio.gather(*self._retiring.values())
        self._mark.remove()
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
        if self._connection.is_up:
            await in_daemon_thread(self._kill_agents)
        await self._connection.close()

    async def end_orphans(self, agent: str) -> None:
        """Kill what a missing agent has left running, wherever it was, and fetch its files."""
        for node in range(self.setup.request.nodes):
            await self._files_of(agent, node).sweep()
        if self.setup.request.nodes > 1:
            await self._release(agent)

    def warnings(self) -> Sequence[str]:
        """Return that the cluster does not reply, while it does not, or that no trial fits on its nodes."""
        if self._connection.warning or self.setup.request.nodes == 1:
            return [self._connection.warning] if self._connection.warning else []
        warning = too_few_nodes(self._connection.nodes, self.setup.request)
        return [warning] if warning else []

    def waits(self) -> Iterator[Wait]:
        """Yield what the executor waits for in Ray, and of its agents."""
        if self._is_open or self._closing:
            yield from self._connection.waits()
            yield from super().waits()
        else:
            yield Wait(what="Ray to start or to reply", then="it is there, or the experiment ends in ERROR")

    def _wait_for_start(self, agent: str) -> Wait:
        since = self._attempts.first_start(agent)
        return Wait(what=f"agent {agent} to start", since=since, then="Ray has free resources for it")

    def on_silent(self, agent: str, is_silent: bool) -> None:
        """Report a silent agent once its cluster replies: while it does not, its own warning covers its agents."""
        if not is_silent and self._unreported.pop(agent, None) is None:
            super().on_silent(agent, False)
        if is_silent and agent in self._links:
            self._unreported[agent] = self._links[agent]
            if self._reporting is None or self._reporting.done():
                self._reporting = self._tasks.start(self._report_silent())

    async def _report_silent(self) -> None:
        with contextlib.suppress(ConnectionError):  # Ray is gone for good, and the experiment ends
            await self._connection.confirmed()
            silent, self._unreported = self._unreported, {}
            for agent, link in silent.items():
                if self._links.get(agent) is link:
                    super().on_silent(agent, True)

    def on_agents_gone(self, reason: str) -> None:
        """Give up the agents of a Ray that has ended; those yet to be made start in the next one."""
        for agent, link in list(self._links.items()):
            if isinstance(link, _OnRay) and (self._closing or agent not in self._waiting_for_ray):
                link.lose(reason)

    def on_nodes(self, nodes: Sequence[RayNode]) -> None:
        """Update the totals after nodes came or went."""
        totals = totals_of(nodes)
        if totals != self._totals:
            self._totals = totals
            self._emit([TotalsChanged(self.setup.clock(), totals)])

    def on_given_up(self, reason: str) -> None:
        """Deliver that the cluster has been gone for too long."""
        self._emit([ExecutorFailed(self.setup.clock(), reason)])

    def _connect(self, agent: str, *, spawn: bool) -> AgentLink | None:
        if spawn:
            self._end_idle_agents_later()
            return self._link(agent, self._spawn_all(agent), new=True)
        actors = [self._find(name) for name in self._members(agent)]
        if None in actors:
            for actor in filter(None, actors):
                kill_actor(actor)  # the others of a trial on several nodes cannot continue without it
            return None
        return self._link(agent, [_itself(actor) for actor in actors], new=False)

    def _members(self, agent: str) -> list[str]:
        """Return the names of the actors behind an agent: one on each node of its trials."""
        return [member_name(agent, node) for node in range(self.setup.request.nodes)]

    def _link(self, agent: str, findings: Sequence[Awaitable[Any]], *, new: bool) -> RayLink | GangLink:
        setup = self.setup

        def connect(node: int, listener: Listener) -> RayLink:
            return RayLink(
                agent=member_name(agent, node),
                finding=findings[node],
                hello=Hello(setup.token, setup.experiment_id),
                listener=listener,
                files=self._files_of(agent, node),
                timeout=setup.agent_timeout,
                new=new,
                sockets=self._sockets,
            )

        if len(findings) == 1:
            return connect(0, self)
        return GangLink(
            agent=agent,
            nodes=len(findings),
            connect=connect,
            listener=self,
            release=lambda: self._release(agent),
            new=new,
        )

    def _files_of(self, agent: str, node: int) -> AgentFiles:
        return AgentFiles(
            member_name(agent, node),
            self.setup,
            lambda: self._attempts.of(agent),
            lambda: self._connection.nodes if self._connection.is_up else (),
            node,
        )

    def _spawn_all(self, agent: str) -> list[Awaitable[Any]]:
        """Return what will be the actors of an agent, all of them in one placement group if there are several."""
        request = self.setup.request
        if request.nodes == 1:
            return [self._spawn(agent)]
        group = asyncio.ensure_future(self._make_group(agent))  # all that wait for it get its error

        async def spawn(node: int) -> Any:
            made = await asyncio.shield(group)
            return await in_daemon_thread(lambda: self._make(agent, made, node))

        return [spawn(node) for node in range(request.nodes)]

    async def _spawn(self, agent: str) -> Any:
        await self._until_startable(agent)
        return await in_daemon_thread(lambda: self._make(agent))

    async def _make_group(self, agent: str) -> Any:
        await self._until_startable(agent)
        return await in_daemon_thread(lambda: make_group(self._group_name(agent), self.setup.request))

    def _group_name(self, agent: str) -> str:
        return f"pitchpipe/{self.setup.experiment_id}/{agent}"

    async def _release(self, agent: str) -> None:
        """Release the placement group of an agent; one in a cluster that is gone is gone with it."""
        if self._connection.is_up:
            with contextlib.suppress(ray_errors().RayError):  # it has gone just now
                await in_daemon_thread(lambda: remove_group(self._group_name(agent)))

    async def _until_startable(self, agent: str) -> None:
        """Wait for Ray, and for the end of an agent of the same name."""
        self._waiting_for_ray.add(agent)
        try:
            await self._connection.confirmed()
        finally:
            self._waiting_for_ray.discard(agent)
        if (retiring := self._retiring.get(agent)) is not None:
            await retiring

    def _end_idle_agents_later(self) -> None:
        if self._ending_idle is None and self._is_open:
            self._ending_idle = self._tasks.later(_END_IDLE_AFTER, self._end_idle_agents)

    def _end_idle_agents(self) -> None:
        """End an idle agent for each that waits with a trial, possibly for the resources of the idle one."""
        self._ending_idle = None
        links = {agent: link for agent, link in self._links.items() if isinstance(link, _OnRay)}
        busy = {agent for agent in links if self._attempts.busy[agent]}
        waiting = [agent for agent, link in links.items() if agent in busy and not link.is_connected]
        idle = [agent for agent, link in links.items() if agent not in busy and link.is_connected]
        for agent, _ in zip(idle, waiting, strict=False):
            self._drop(agent)
            self._retiring[agent] = self._tasks.start(self._retire(agent, links[agent]))
        if waiting:
            self._end_idle_agents_later()

    async def _retire(self, agent: str, link: AgentLink) -> None:
        """End an agent and wait until its name is free: its slot may need another agent."""
        await link.close(0.0)
        await self._until_free(self._members(agent))

    async def _until_free(self, names: Sequence[str]) -> None:
        deadline = time.monotonic() + _RELEASE_TIMEOUT
        while time.monotonic() < deadline:
            if await in_thread_or_here(lambda: all(self._find(name) is None for name in names)):
                return
            await asyncio.sleep(0.02)  # Ray has no event for this

    async def _end_others(self, kept: Collection[str]) -> None:
        """End the agents of an earlier manager that have no attempt: one may run what the store has forgotten.

        It would write into the files of an attempt that another agent starts next.
        """
        mine = {name for agent in kept for name in self._members(agent)}
        await self._until_free(await in_daemon_thread(lambda: self._kill_agents(mine)))

    def _find(self, agent: str) -> Any | None:
        """Return the actor of an agent; None if there is none."""
        import ray

        try:
            return ray.get_actor(agent, namespace=self.setup.experiment_id)
        except ValueError:
            return None

    def _make(self, agent: str, group: Any = None, node: int = 0) -> Any:
        """Make the actor, or get that of an earlier manager; kill it if the agent was given up meanwhile."""
        import ray

        actor_class = ray.remote(RayAgent).options(
            name=member_name(agent, node),
            namespace=self.setup.experiment_id,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_CONCURRENT_CALLS,
            **actor_options(self.setup.request, group, node),
        )
        actor: Any = actor_class.remote(self._agent_setup(member_name(agent, node)))
        if agent not in self._links:
            kill_actor(actor)
        return actor

    def _agent_setup(self, agent: str) -> AgentSetup:
        local = self._connection.is_private and self._runtime_env is None
        return AgentSetup(
            agent_id=agent,
            token=self.setup.token,
            folder=str(self.setup.folder),
            # The supervisor's environment may be that of another shell.
            environment=dict(os.environ) if local else None,
            directory=os.getcwd() if local else None,
            omp_threads=os.environ.get("OMP_NUM_THREADS"),
            has_gpus=bool(self.setup.request.gpus),
            mark=self._mark.name,
            code_is_shipped=bool((self._runtime_env or {}).get("working_dir")),
            is_in_group=self.setup.request.nodes > 1,
        )

    def _kill_agents(self, kept: Collection[str] = ()) -> list[str]:
        """Kill the agents of the experiment but those to be kept; return the names of their actors."""
        killed: list[str] = []
        for each in named_actors():
            name = each["name"]
            if each["namespace"] != self.setup.experiment_id or name in kept:
                continue
            if (actor := self._find(name)) is not None:
                kill_actor(actor)
                remove_group(self._group_name(name))
                killed.append(name)
        return killed


def _make_sockets(folder: Path) -> Path | None:
    """Make the directory for sockets of agents on this node; return None if that fails."""
    try:
        directory = agent_sockets(folder)
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        _log.info("agents on this node are called, they have no sockets: %s", error)
        return None
    return directory


async def _itself(value: Any) -> Any:
    return value
