"""A heartbeat: notices that the other side of a connection has been silent for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Heartbeat"]

_BEATS = 4
"""How often a silent peer is asked for a sign of life before it is given up."""


class Heartbeat:
    """Calls `beat` when nothing was heard for a while, and once `on_silence` when nothing was for `timeout` seconds.

    If this process itself was stopped meanwhile, the time begins anew: nobody could have been heard.
    """

    def __init__(self, timeout: float, beat: Callable[[], None], on_silence: Callable[[], None]) -> None:
        self._timeout = timeout
        self._interval = timeout / _BEATS
        self._beat = beat
        self._on_silence = on_silence
        self._loop = asyncio.get_running_loop()
        self._heard = self._looked = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to listen; a heart that beats already goes on."""
        if self._timer is None:
            self.heard()
            self._wait()

    def heard(self) -> None:
        """Note a sign of life."""
        self._heard = self._loop.time()

    def stop(self) -> None:
        """Listen no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._looked = self._loop.time()
        self._timer = self._loop.call_later(self._interval, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now - self._looked > 2 * self._interval:
            self._heard = now
        if now - self._heard >= self._timeout:
            self._timer = None
            self._on_silence()
            return
        if now - self._heard >= self._interval / 2:
            self._beat()
        self._wait()
