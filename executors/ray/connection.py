"""The manager's connection to Ray: joined, watched, and made anew when it is lost.

The keeper of a private Ray tells its end by the end of its connection. The control service of a cluster is asked
every second. While it does not answer, nothing new is started; what runs goes on as far as it can. When another
cluster answers in its place (the head was started again), that one is joined.

Ray would end the process of a driver whose cluster has been gone for a minute (see `join`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..base import ExecutorError
from ..daemon_thread import in_daemon_thread
from ..private_ray import RayLease, acquire
from .join import connected_to, import_ray, is_connected_elsewhere, join, leave
from .nodes import ClusterAway, ClusterReplaced, Node, live_nodes

__all__ = ["ConnectionListener", "RayConnection"]

_log = logging.getLogger(__name__)

_ASK_EVERY = 1.0
# So long the control service may take to answer (s).
_ANSWER_TIMEOUT = 3.0
_FIRST_ANSWER_TIMEOUT = 30.0
_LEAVE_TIMEOUT = 20.0
# A keeper that was killed is seen to be gone so long (s) after its Ray at the latest.
_LOST_WITHIN = 1.0
# The nodes of a cluster end so long (s) after its control service; and to ask for it costs Ray half a core.
_NODES_STAY = 60.0


class ConnectionListener(ABC):
    """Who hears what becomes of the connection."""

    @abstractmethod
    def on_agents_gone(self, reason: str) -> None:
        """All that ran in this Ray is gone with it."""

    @abstractmethod
    def on_nodes(self, nodes: Sequence[Node]) -> None:
        """The nodes of the cluster are others than before."""

    @abstractmethod
    def on_given_up(self, reason: str) -> None:
        """There is no Ray any more, and there will be none."""


class RayConnection:
    """Joins `address`, or the private Ray when that is None.

    If this process is connected to a Ray already, by whoever started it, that one is used and stays
    connected. A cluster that is gone for `reconnect_timeout` seconds is given up.
    """

    def __init__(
        self,
        address: str | None,
        listener: ConnectionListener,
        *,
        idle_timeout: float = 300.0,
        reconnect_timeout: float = 600.0,
        runtime_env: dict[str, Any] | None = None,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        self.is_private = address is None
        self.nodes: tuple[Node, ...] = ()
        self.trouble = ""  # a sentence, while there is one
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
        self._watching: asyncio.Task[None] | None = None

    async def open(self, namespace: str) -> None:
        """Join; raises `ExecutorError`."""
        self._namespace = namespace
        await self._join()
        try:
            self.nodes = await in_daemon_thread(lambda: live_nodes(_FIRST_ANSWER_TIMEOUT))
        except (ClusterAway, ClusterReplaced) as error:
            raise ExecutorError(f"{self._name}: {error}") from error
        self._settled.set()
        watch = self._watch_cluster() if self._lease is None else self._watch_keeper(self._lease)
        self._watching = asyncio.create_task(watch)

    async def ready(self) -> None:
        """Return when Ray can be talked to; raises ConnectionError when it cannot be had any more."""
        await self._settled.wait()
        if self._problem is not None:
            raise ConnectionError(self._problem)

    async def confirmed(self) -> None:
        """The same, after a look whether a cluster still answers: what asks it while it is gone hangs."""
        if self._lease is None and self.is_up:
            try:
                await in_daemon_thread(lambda: live_nodes(_ANSWER_TIMEOUT))
            except (ClusterAway, ClusterReplaced):
                self._settled.clear()  # until the watch has come to the same result, or to another
        await self.ready()

    @property
    def is_up(self) -> bool:
        """Whether Ray can be talked to now."""
        return self._settled.is_set() and self._problem is None

    async def stop_waiting(self) -> None:
        """Reconnect no more: whoever waits for a Ray that is away waits in vain."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
        if not self._settled.is_set():
            self._give_up("the executor is closed")

    async def close(self) -> None:
        """Disconnect, and give the lease back; waits for the end of a keeper that leaves because of that."""
        await self.stop_waiting()
        self._give_up("the executor is closed")
        await self._leave()

    @property
    def _name(self) -> str:
        return (
            "the private Ray" if self.is_private else f"the Ray cluster at {self._address or connected_to()}"
        )

    async def _join(self) -> None:
        if is_connected_elsewhere():
            self.is_private = False
            return
        if self._address is None:
            await self._join_private()
        elif connected_to() != self._address:
            await join(self._address, self._namespace, runtime_env=self._runtime_env)
        self._joined = True

    async def _join_private(self) -> None:
        """Lease the private Ray and join it; a keeper that is killed meanwhile is replaced."""
        for last in (False, False, True):
            # The import takes as long as the keeper needs to answer.
            starting = acquire(self._idle_timeout, self._resources)
            lease, _ = await asyncio.gather(starting, in_daemon_thread(import_ray))
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
                _log.warning("the private Ray has ended while it was joined: another is started")
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

    async def _watch_keeper(self, lease: RayLease | None) -> None:
        """Replace the private Ray each time that its keeper ends."""
        while lease is not None:
            await lease.until_lost()
            _log.warning("the private Ray has ended: another is started")
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
        """Ask the control service now and then; end when it is given up."""
        since: float | None = None
        while self._problem is None:
            await asyncio.sleep(_ASK_EVERY)
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

    def _note(self, nodes: tuple[Node, ...]) -> None:
        if {each.node_id for each in nodes} != {each.node_id for each in self.nodes}:
            self.nodes = nodes
            self._listener.on_nodes(nodes)

    def _be_away(self, now: float) -> float:
        patience = f"for {self._reconnect_timeout:g} s at most"
        self.trouble = f"{self._name} does not answer: nothing new starts until it does ({patience})"
        _log.warning("%s", self.trouble)
        self._settled.clear()
        return now

    def _be_back(self, since: float | None) -> None:
        if since is not None:
            _log.warning("%s answers again after %.0f s", self._name, time.monotonic() - since)
        self.trouble = ""
        self._settled.set()

    async def _join_the_next(self, since: float) -> None:
        """Our cluster is over, and so is what ran in it: join what has taken its place, as soon as there is one."""
        if not self._joined:
            self._fail(f"{self._name} has ended, and another answers in its place: connect to it and resume")
            return
        self.trouble = f"{self._name} is gone: what ran in it is run again in the one that takes its place"
        _log.warning("%s", self.trouble)
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
                await asyncio.sleep(_ASK_EVERY)
        self.trouble = ""
        self._settled.set()

    def _gone_for_good(self) -> str:
        return f"{self._name} has been gone for {self._reconnect_timeout:g} s: start it again and resume"

    def _fail(self, problem: str) -> None:
        self._give_up(problem)
        self._listener.on_given_up(problem)

    def _give_up(self, problem: str) -> None:
        self._problem = problem
        self._settled.set()
