"""The manager's connection to Ray: joined, watched, and for a private Ray made anew when it is lost.

Ray ends the process of a driver whose cluster has been gone for a minute. So when the keeper of a private Ray
dies, the manager must disconnect; it goes on with another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from .executor import ExecutorError
from .ray_join import connected_to, import_ray, in_daemon_thread, is_connected_elsewhere, join, leave
from .ray_lease import RayLease, acquire

__all__ = ["RayConnection"]

_log = logging.getLogger(__name__)


class RayConnection:
    """Joins `address`, or the private Ray when that is None; `on_lost` hears when the latter is gone.

    If this process is connected to a Ray already, by whoever started it, that one is used and stays
    connected.
    """

    def __init__(
        self,
        address: str | None,
        idle_timeout: float,
        runtime_env: dict[str, Any] | None,
        resources: Mapping[str, float] | None,
        on_lost: Callable[[str], None],
    ) -> None:
        self.is_private = address is None
        self._address = address
        self._idle_timeout = idle_timeout
        self._runtime_env = runtime_env
        self._resources = resources
        self._on_lost = on_lost
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
        self._settled.set()
        if self._lease is not None:
            self._watching = asyncio.create_task(self._watch(self._lease))

    async def ready(self) -> None:
        """Return when Ray can be talked to; raises ConnectionError when it cannot be had any more."""
        await self._settled.wait()
        if self._problem is not None:
            raise ConnectionError(self._problem)

    @property
    def is_up(self) -> bool:
        """Whether Ray can be talked to now."""
        return self._settled.is_set() and self._problem is None

    async def close(self) -> None:
        """Disconnect, and give the lease back; waits for the end of a keeper that leaves because of that."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))
        self._give_up("the executor is closed")
        await self._leave()

    async def _join(self) -> None:
        if is_connected_elsewhere():
            self.is_private = False
            return
        address, token_path = self._address, None
        if address is None:
            # The import takes as long as the keeper needs to answer.
            starting = acquire(self._idle_timeout, self._resources)
            self._lease, _ = await asyncio.gather(starting, in_daemon_thread(import_ray))
            address, token_path = self._lease.address, self._lease.token_path
        if connected_to() != address:
            await join(address, self._namespace, token_path=token_path, runtime_env=self._runtime_env)
        self._joined = True

    async def _leave(self) -> None:
        if self._joined:
            self._joined = False
            await leave()
        if self._lease is not None:
            lease, self._lease = self._lease, None
            await lease.close()

    async def _watch(self, lease: RayLease | None) -> None:
        """Replace the private Ray each time that its keeper ends."""
        while lease is not None:
            await lease.until_lost()
            _log.warning("the private Ray has ended: another is started")
            self._settled.clear()
            self._on_lost("the private Ray has ended")
            try:
                await self._leave()
                await self._join()
            except ExecutorError as error:
                self._give_up(str(error))
            self._settled.set()
            lease = self._lease

    def _give_up(self, problem: str) -> None:
        self._problem = problem
        self._settled.set()
