"""The manager's connection to Ray: joins it, watches it, and joins again when it is lost.

When the supervisor of a private Ray ends, so does the connection to it. The control service of a cluster is queried
every second. While it does not reply, nothing new starts, and what runs continues as far as it can. If another
cluster replies at the same address (its head was restarted), that one is joined.

Ray would end a driver's process a minute after its cluster is gone (see `join`).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from ...protocol import JsonObject
from ...runner import Wait
from ..clusters import token_path_of
from ..errors import ExecutorError
from ..private_ray import RayLease, acquire
from ..tasks import Tasks, in_daemon_thread
from .join import connected_to, is_connected_elsewhere, join, leave
from .nodes import ClusterAway, ClusterReplaced, RayNode, live_nodes

_log = logging.getLogger(__name__)

_QUERY_EVERY = 1.0
# How long (s) the control service may take to reply.
_ANSWER_TIMEOUT = 3.0
_FIRST_ANSWER_TIMEOUT = 30.0
_LEAVE_TIMEOUT = 20.0
# How long (s) after its Ray a killed supervisor is seen to be gone, at the latest.
_LOST_WITHIN = 1.0
# How long (s) after its control service the nodes of a cluster end; queries after that cost Ray half a core.
_NODES_STAY = 60.0


class ConnectionListener(ABC):
    """Receives what becomes of the connection."""

    @abstractmethod
    def on_agents_gone(self, reason: str) -> None:
        """Note that all agents of this Ray have ended with it."""

    @abstractmethod
    def on_nodes(self, nodes: Sequence[RayNode]) -> None:
        """Note that nodes of the cluster came or went."""

    @abstractmethod
    def on_given_up(self, reason: str) -> None:
        """Note that Ray is gone for good."""


class RayConnection:
    """Joins `address`, or the private Ray when that is None.

    If this process is connected to a Ray already, that one is used and stays connected. A cluster that is gone
    for `reconnect_timeout` seconds is given up.
    """

    def __init__(
        self,
        address: str | None,
        listener: ConnectionListener,
        *,
        idle_timeout: float = 300.0,
        reconnect_timeout: float = 600.0,
        runtime_env: JsonObject | None = None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        self.is_private = address is None
        self.nodes: tuple[RayNode, ...] = ()
        self.warning = ""  # a sentence while the cluster is away
        self._away_since = 0.0  # seconds since the epoch; for as long as there is a warning
        self._address = address
        self._listener = listener
        self._idle_timeout = idle_timeout
        self._reconnect_timeout = reconnect_timeout
        self._runtime_env = runtime_env
        self._resources = resources
        self._namespace = ""
        self._lease: RayLease | None = None
        self._joined = False
        self._settled = asyncio.Event()
        self._problem: str | None = None
        self._tasks = Tasks(self._on_failure)
        self._watching: asyncio.Task[None] | None = None

    async def open(self, namespace: str) -> None:
        """Join; raise `ExecutorError` if that fails."""
        self._namespace = namespace
        await self._join()
        try:
            self.nodes = await in_daemon_thread(lambda: live_nodes(_FIRST_ANSWER_TIMEOUT))
        except (ClusterAway, ClusterReplaced) as error:
            raise ExecutorError(f"{self._name}: {error}") from error
        self._settled.set()
        watch = self._watch_cluster() if self._lease is None else self._watch_supervisor(self._lease)
        self._watching = self._tasks.start(watch)

    async def ready(self) -> None:
        """Return when Ray is there; raise `ConnectionError` if it is gone for good."""
        await self._settled.wait()
        if self._problem is not None:
            raise ConnectionError(self._problem)

    async def confirmed(self) -> None:
        """Do the same after a query of the cluster: Ray's calls hang while it is away."""
        if self._lease is None and self.is_up:
            try:
                await in_daemon_thread(lambda: live_nodes(_ANSWER_TIMEOUT))
            except (ClusterAway, ClusterReplaced):
                self._settled.clear()  # until the watch has queried it, too
        await self.ready()

    @property
    def is_up(self) -> bool:
        """Whether Ray is there now."""
        return self._settled.is_set() and self._problem is None

    def waits(self) -> Iterator[Wait]:
        """Yield that the cluster is waited for, while it is away."""
        if self.warning:
            longest, then = self._reconnect_timeout, "the experiment ends in ERROR, and can be resumed"
            yield Wait(what=f"{self._name} to answer", since=self._away_since, longest=longest, then=then)

    async def stop_waiting(self) -> None:
        """Stop reconnecting; whatever waits for Ray fails now."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
        if not self._settled.is_set():
            self._give_up("the executor is closed")

    async def close(self) -> None:
        """Disconnect and give the lease back; wait for the supervisor if that ends it."""
        await self.stop_waiting()
        self._give_up("the executor is closed")
        await self._leave()

    @property
    def _name(self) -> str:
        if self.is_private:
            return "the private Ray"
        return f"the Ray cluster at {self._address or connected_to()}"

    async def _join(self) -> None:
        if is_connected_elsewhere():
            self.is_private = False
            return
        if self._address is None:
            await self._join_private()
        elif connected_to() != self._address:
            await join(
                self._address,
                self._namespace,
                token_path=token_path_of(self._address),
                runtime_env=self._runtime_env,
            )
        self._joined = True

    async def _join_private(self) -> None:
        """Lease the private Ray and join it; replace a supervisor that is killed meanwhile."""
        for last in (False, False, True):
            # Ray is imported (0.3 s) while its supervisor replies.
            importing = in_daemon_thread(lambda: importlib.import_module("ray"))
            lease, _ = await asyncio.gather(acquire(self._idle_timeout, self._resources), importing)
            self._lease = lease
            if connected_to() == lease.address:
                return
            try:
                await join(
                    lease.address,
                    self._namespace,
                    token_path=lease.token_path,
                    runtime_env=self._runtime_env,
                )
            except ExecutorError:
                if last or not await lease.is_lost(_LOST_WITHIN):
                    raise
                _log.warning("the private Ray has ended while it was joined: starting another")
                await lease.close()
            else:
                return

    async def _leave(self) -> None:
        if self._joined:
            self._joined = False
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(leave(), _LEAVE_TIMEOUT)
        if self._lease is not None:
            lease, self._lease = self._lease, None
            await lease.close()

    async def _watch_supervisor(self, lease: RayLease | None) -> None:
        """Replace the private Ray whenever its supervisor ends."""
        while lease is not None:
            await lease.until_lost()
            _log.warning("the private Ray has ended: starting another")
            self._settled.clear()
            self._listener.on_agents_gone("the private Ray has ended")
            try:
                await self._leave()
                await self._join()
            except ExecutorError as error:
                self._fail(str(error))
            self._settled.set()
            lease = self._lease

    async def _watch_cluster(self) -> None:
        """Query the control service until the cluster is given up."""
        since: float | None = None
        while self._problem is None:
            await asyncio.sleep(_QUERY_EVERY)
            now = time.monotonic()
            try:
                self._note(await in_daemon_thread(lambda: live_nodes(_ANSWER_TIMEOUT)))
                since = self._be_back(since)
            except ClusterAway:
                since = self._be_away(now) if since is None else since
                if now - since > self._reconnect_timeout:
                    self._fail(self._gone_for_good())
                elif now - since > _NODES_STAY and self._joined:
                    await self._join_the_next(since)
                    since = None
            except ClusterReplaced:
                await self._join_the_next(now if since is None else since)
                since = None

    def _note(self, nodes: tuple[RayNode, ...]) -> None:
        if {each.node_id for each in nodes} != {each.node_id for each in self.nodes}:
            self.nodes = nodes
            self._listener.on_nodes(nodes)

    def _be_away(self, now: float) -> float:
        self._away_since = time.time()
        patience = f"for {self._reconnect_timeout:g} s at most"
        self.warning = f"{self._name} does not answer: nothing new starts until it does ({patience})"
        _log.warning("%s", self.warning)
        self._settled.clear()
        return now

    def _be_back(self, since: float | None) -> None:
        if since is not None:
            _log.warning("%s answers again after %.0f s", self._name, time.monotonic() - since)
        self.warning = ""
        self._settled.set()

    async def _join_the_next(self, since: float) -> None:
        """Join the cluster that replaces ours, which has ended with all that ran in it, as soon as it is there."""
        if not self._joined:
            self._fail(f"{self._name} has ended, and another answers in its place: connect to it and resume")
            return
        self._away_since = self._away_since if self.warning else time.time()
        self.warning = f"{self._name} is gone: what ran in it is run again in the one that takes its place"
        _log.warning("%s", self.warning)
        self._settled.clear()
        self._listener.on_agents_gone("its Ray cluster has ended")
        await self._leave()
        while not self._joined and self._problem is None:
            try:
                await self._join()
            except ExecutorError as error:
                _log.info("%s", error)
                if time.monotonic() - since > self._reconnect_timeout:
                    self._fail(self._gone_for_good())
                await asyncio.sleep(_QUERY_EVERY)
        self.warning = ""
        self._settled.set()

    def _gone_for_good(self) -> str:
        return f"{self._name} has been gone for {self._reconnect_timeout:g} s: start it again and resume"

    def _on_failure(self, error: Exception) -> None:
        """Give up a cluster that is no longer watched."""
        _log.error("%s can no longer be watched", self._name, exc_info=error)
        self._fail(f"{self._name} can no longer be watched: {type(error).__name__}: {error}")

    def _fail(self, problem: str) -> None:
        self._give_up(problem)
        self._listener.on_given_up(problem)

    def _give_up(self, problem: str) -> None:
        self._problem = problem
        self._settled.set()
