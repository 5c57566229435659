"""A heartbeat: notices when the other side of a connection falls silent, and when the silence lasts too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_BEATS = 4
"""How often a silent peer is asked for a sign of life before it is given up."""


class Heartbeat:
    """Calls `beat` after a while without a sign of life, and `on_silence` once after `timeout` seconds without one.

    `on_suspect` is called with True after `suspect_after` seconds of silence, and with False when that ends. Time in
    which this process itself was stopped, or too busy to look, is not silence: nothing could have been received.
    """

    def __init__(
        self,
        *,
        timeout: float,
        beat: Callable[[], None],
        on_silence: Callable[[], None],
        suspect_after: float | None = None,
        on_suspect: Callable[[bool], None] = lambda suspect: None,
    ) -> None:
        self._timeout = timeout
        self._suspect_after = timeout if suspect_after is None else min(timeout, suspect_after)
        self._interval = self._suspect_after / _BEATS
        self._beat = beat
        self._on_silence = on_silence
        self._on_suspect = on_suspect
        self._is_suspect = False
        self._loop = asyncio.get_running_loop()
        self._heard = self._looked = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start listening; has no effect while it listens."""
        if self._timer is None:
            self.heard()
            self._wait()

    def heard(self) -> None:
        """Note a sign of life."""
        self._heard = self._loop.time()
        if self._is_suspect:
            self._is_suspect = False
            self._on_suspect(False)

    def stop(self) -> None:
        """Stop listening."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._looked = self._loop.time()
        self._timer = self._loop.call_later(self._interval, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        late = now - self._looked - self._interval
        self._heard = min(now, self._heard + late)
        if now - self._heard >= self._timeout:
            self._timer = None
            self._on_silence()
            return
        if now - self._heard >= self._suspect_after and not self._is_suspect:
            self._is_suspect = True
            self._on_suspect(True)
        if now - self._heard >= self._interval / 2:
            self._beat()
        self._wait()
