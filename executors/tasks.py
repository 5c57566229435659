"""Work beside the event loop: tasks that no caller awaits, blocking calls in threads, and heartbeats of connections.

asyncio only logs the error of a task or callback that no caller awaits: what should have followed it never happens, and
a trial may wait for ever. So such work has an owner who learns of its failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

# An agent that was silent for so long (s) gets no new work until it gives a sign of life.
SUSPECT_AFTER = 3.0
# A new process has to load its modules before it can say hello; so long (s) it may take at least.
START_TIMEOUT = 60.0
_Result = TypeVar("_Result")
_BEATS = 4
"""How often a silent peer is asked for a sign of life before it is given up."""


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


async def in_thread_or_here(work: Callable[[], _Result]) -> _Result:
    """Run short `work` as `in_daemon_thread` does, or on this thread if the machine allows no other one."""
    try:
        done = _start_thread(work)
    except RuntimeError:
        return work()
    return await done


async def in_daemon_thread(work: Callable[[], _Result], *, stay: bool = False) -> _Result:
    """Run `work` as `asyncio.to_thread` does, but in a thread for which the interpreter does not wait at its end.

    It also runs while the interpreter ends, when there is no longer a pool of threads.
    With `stay` the thread outlives the work: the kernel kills Ray's processes with the thread that started them.
    """
    return await _start_thread(work, stay=stay)


def _start_thread(work: Callable[[], _Result], *, stay: bool = False) -> asyncio.Future[_Result]:
    """Start `work` in a thread; raise RuntimeError if there can be no other thread."""
    done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()

    def run() -> None:
        try:
            finish = functools.partial(done.set_result, work())
        except BaseException as error:  # noqa: BLE001  (the awaiting task receives any error)
            finish = functools.partial(done.set_exception, error)
        settle_later(done, finish)
        if stay:
            threading.Event().wait()

    threading.Thread(target=run, daemon=True).start()
    return done


def settle_later(future: asyncio.Future[_Result], finish: Callable[[], None]) -> None:
    """Have the loop of a future call `finish`, which settles it, unless it is cancelled; any thread may call this."""

    def settle() -> None:
        if not future.done():
            finish()

    with contextlib.suppress(RuntimeError):  # the loop is closed: no task is waiting
        future.get_loop().call_soon_threadsafe(settle)


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

    @property
    def silence(self) -> float:
        """How long (s) there has been no sign of life."""
        return self._loop.time() - self._heard

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
