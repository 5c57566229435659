"""Runs trials in agents that are Ray actors, on a cluster or on the user's private Ray."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from ...runner import AttemptOrder, ExecutorFailed, Ledger, Request, Totals, TotalsChanged
from ...trial_agent import Hello
from ..agents import AgentLink, AgentTrialExecutor
from ..base import Deliver, ExecutorError, RunSetup
from ..daemon_thread import in_daemon_thread
from ..private_ray import named_actors
from .agent import AgentSetup, RayAgent
from .care import AgentCare
from .connection import ConnectionListener, RayConnection
from .files import SharedMark
from .link import RayLink
from .nodes import Node, totals_of

__all__ = ["RayTrialExecutor"]

# A poll, a watching call, and others; a dead manager's poll occupies a thread for a while.
_CONCURRENT_CALLS = 8
# After so many seconds an agent that waits for resources gets those of an idle one.
_END_IDLE_AFTER = 2.0
_RELEASE_TIMEOUT = 5.0


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
        runtime_env: dict[str, Any] | None = None,
        resources: Mapping[str, float] | None = None,
        reconnect_timeout: float = 600.0,
    ) -> None:
        super().__init__()
        self._runtime_env = runtime_env
        self._is_open = False
        self._totals = Totals({})
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._waiting_for_ray: set[str] = set()
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
        if self._connection.is_up:
            await in_daemon_thread(self._kill_remaining_agents)
        await self._connection.close()

    async def end_orphans(self, agent: str) -> None:
        """Kill what a missing agent has left running, wherever it was, and fetch its files."""
        await self._care_of(agent).sweep()

    def warnings(self) -> Sequence[str]:
        """Return that the cluster does not reply, while it does not."""
        return [self._connection.warning] if self._connection.warning else []

    def on_agents_gone(self, reason: str) -> None:
        """Give up the agents of a Ray that has ended; those yet to be made start in the next one."""
        for agent, link in list(self._links.items()):
            if isinstance(link, RayLink) and (self._closing or agent not in self._waiting_for_ray):
                link.lose(reason)

    def on_nodes(self, nodes: Sequence[Node]) -> None:
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
            return self._link(agent, self._spawn(agent), new=True)
        actor = self._find(agent)
        return None if actor is None else self._link(agent, _found(actor), new=False)

    def _link(self, agent: str, finding: Awaitable[Any], *, new: bool) -> RayLink:
        setup = self.setup
        hello = Hello(setup.token, setup.experiment_id)
        care = self._care_of(agent)
        return RayLink(
            agent=agent,
            finding=finding,
            hello=hello,
            listener=self,
            care=care,
            timeout=setup.agent_timeout,
            new=new,
        )

    def _care_of(self, agent: str) -> AgentCare:
        return AgentCare(agent, self.setup, lambda: self._orders_of(agent), self._nodes_now)

    def _orders_of(self, agent: str) -> list[AttemptOrder]:
        return [order for order in self._orders.values() if order.agent == agent]

    def _nodes_now(self) -> Sequence[Node]:
        return self._connection.nodes if self._connection.is_up else ()

    async def _spawn(self, agent: str) -> Any:
        self._waiting_for_ray.add(agent)
        try:
            await self._connection.confirmed()
        finally:
            self._waiting_for_ray.discard(agent)
        if (retiring := self._retiring.get(agent)) is not None:
            await retiring
        return await in_daemon_thread(lambda: self._make(agent))

    def _end_idle_agents_later(self) -> None:
        if self._ending_idle is None and self._is_open:
            loop = asyncio.get_running_loop()
            self._ending_idle = loop.call_later(_END_IDLE_AFTER, self._end_idle_agents)

    def _end_idle_agents(self) -> None:
        """End an idle agent for each that waits with a trial, possibly for the resources of the idle one."""
        self._ending_idle = None
        links = {agent: link for agent, link in self._links.items() if isinstance(link, RayLink)}
        waiting = [agent for agent, link in links.items() if not link.is_connected and self._busy[agent]]
        idle = [agent for agent, link in links.items() if link.is_connected and not self._busy[agent]]
        for agent, _ in zip(idle, waiting, strict=False):
            self._drop(agent)
            self._retiring[agent] = asyncio.ensure_future(self._retire(agent, links[agent]))
        if waiting:
            self._end_idle_agents_later()

    async def _retire(self, agent: str, link: AgentLink) -> None:
        """End an agent and wait until its name is free: its slot may need another agent."""
        await link.close(0.0)
        deadline = time.monotonic() + _RELEASE_TIMEOUT
        while await asyncio.to_thread(self._find, agent) is not None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)  # Ray has no event for this

    def _find(self, agent: str) -> Any | None:
        """Return the actor of an agent; None if there is none."""
        import ray

        try:
            return ray.get_actor(agent, namespace=self.setup.experiment_id)
        except ValueError:
            return None

    def _make(self, agent: str) -> Any:
        """Make the actor, or get that of an earlier manager; kill it if the agent was given up meanwhile."""
        import ray

        actor_class = ray.remote(RayAgent).options(
            name=agent,
            namespace=self.setup.experiment_id,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_CONCURRENT_CALLS,
            **_resource_options(self.setup.request),
        )
        actor: Any = actor_class.remote(self._agent_setup(agent))
        if agent not in self._links:
            ray.kill(actor, no_restart=True)
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
            search_path=_search_path(),
            mark=self._mark.name,
            code_is_shipped=bool((self._runtime_env or {}).get("working_dir")),
        )

    def _kill_remaining_agents(self) -> None:
        import ray

        for each in named_actors():
            if (
                each["namespace"] == self.setup.experiment_id
                and (actor := self._find(each["name"])) is not None
            ):
                ray.kill(actor, no_restart=True)


def _search_path() -> tuple[str, ...]:
    """Return where this program finds its own modules: beside its script, and in the working directory."""
    script = os.path.dirname(os.path.realpath(sys.argv[0]))
    return (script, os.getcwd()) if script in sys.path else (os.getcwd(),)


async def _found(value: Any) -> Any:
    return value


def _resource_options(request: Request) -> dict[str, Any]:
    """Return the options of a Ray actor for one trial's request.

    >>> _resource_options(Request(cpus=2, memory=1024, gpus=0.5, custom={"widget": 1}))
    {'num_cpus': 2, 'num_gpus': 0.5, 'memory': 1024, 'resources': {'widget': 1}}
    """
    options: dict[str, Any] = {"num_cpus": request.cpus, "num_gpus": request.gpus or 0}
    if request.memory:
        options["memory"] = request.memory
    if request.custom:
        options["resources"] = dict(request.custom)
    return options
