"""Tasks and callbacks that no caller awaits, with an owner who learns of their failures.

asyncio only logs the error of such a task or callback: what should have followed it never happens, and a trial may wait
for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """What one owner has the running loop do; `on_failure` receives the error of whatever fails."""

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        self._on_failure = on_failure
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do `work` in a task of its own."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def soon(self, act: Callable[..., object], *arguments: Any) -> None:
        """Call a function in the next turn of the loop."""
        asyncio.get_running_loop().call_soon(self.guarded, act, *arguments)

    def later(self, delay: float, act: Callable[..., object], *arguments: Any) -> asyncio.TimerHandle:
        """Call a function after `delay` seconds."""
        return asyncio.get_running_loop().call_later(delay, self.guarded, act, *arguments)

    def when_done(self, future: asyncio.Future[Any], act: Callable[[asyncio.Future[Any]], object]) -> None:
        """Call a function with a future that is done."""
        future.add_done_callback(lambda done: self.guarded(act, done))

    def guarded(self, act: Callable[..., object], *arguments: Any) -> None:
        """Call a function; its failure is the owner's."""
        try:
            act(*arguments)
        except Exception as error:  # noqa: BLE001  (the owner receives any error)
            self._on_failure(error)

    def cancel(self) -> None:
        """Cancel all tasks that have not ended."""
        for task in self._running:
            task.cancel()

    async def wait(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for the end of all tasks."""
        if self._running:
            await asyncio.wait(self._running, timeout=timeout)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._on_failure(error)
