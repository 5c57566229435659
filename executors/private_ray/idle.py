"""When the supervisor of the private Ray may end: it counts leases and waits for the idle timeout."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

# How long (s) a new supervisor waits for its first lease.
_FIRST_LEASE = 30.0
# Ray does not report the end of an actor. While agents live without a manager, it is asked at this interval (s).
_LOOK_SOONEST, _LOOK_LATEST = 0.05, 1.0


class IdleClock:
    """Counts leases; `wait` returns after `timeout` seconds without a lease and without an agent.

    `timeout` is the largest that a lease has asked for since the last time without either.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.leases = 0
        self.timeout = _FIRST_LEASE
        self.is_idle = True
        self._idle_since: float | None = None
        self._clock = clock
        self._changed = asyncio.Event()

    def lease(self, timeout: float) -> None:
        """Count a lease of a manager that wants this idle timeout (s)."""
        self.timeout = timeout if self.is_idle else max(timeout, self.timeout)
        self.is_idle = False
        self.leases += 1
        self._changed.set()

    def release(self) -> None:
        """Count the end of a lease."""
        self.leases -= 1
        self._changed.set()

    @property
    def seconds_left(self) -> float | None:
        """How long this Ray stays without a new lease; None while it is in use."""
        if self._idle_since is None or self.leases:
            return None
        return max(0.0, self._idle_since + self.timeout - self._clock())

    async def wait(self, agents: Callable[[], list[str]]) -> None:
        """Return when it is time to end; `agents` lists those that live (called in a thread)."""
        look = _LOOK_SOONEST
        while True:
            self._changed.clear()
            if self.leases:
                self._idle_since, look = None, _LOOK_SOONEST
                await self._changed.wait()
            elif await asyncio.to_thread(agents):
                self._idle_since = None
                await self._wait_changed(look)
                look = min(2 * look, _LOOK_LATEST)
            elif not self.leases:
                now = self._clock()
                self._idle_since = now if self._idle_since is None else self._idle_since
                remaining = self._idle_since + self.timeout - now
                if remaining <= 0:
                    return
                self.is_idle = True
                await self._wait_changed(remaining)

    async def _wait_changed(self, timeout: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)
