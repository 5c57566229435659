"""Workers: queues of commands, each handled in order and one at a time, on a thread of its own or in a pool.

So the objects behind a queue need no locks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any

from ..protocol import CommandType


class Worker:
    """Handles the commands of one queue on a thread of its own.

    `handle(command, data)` does the work; then `done(worker)` is called, or `failed(worker, error)` if one of
    them raised, after which the worker handles nothing more. `leaving(worker)` is called before a worker ends
    without failure, and after a task if nothing else waits. All of them run on the worker.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[CommandType, Any], None],
        done: Callable[[Worker], None],
        leaving: Callable[[Worker], None],
        failed: Callable[[Worker, BaseException], None],
    ) -> None:
        self.name = name
        self.queue: SimpleQueue[_Item] = SimpleQueue()
        self.n = 0  # the number of the last command that it handled
        self.handled_s = 0.0  # that its commands took in all
        self.unacknowledged = 0
        self._handle, self._done, self._leaving, self._failed = handle, done, leaving, failed
        self._halted = False
        self._ended = Event()

    def start(self) -> None:
        """Start handling the queue."""
        Thread(target=self._serve, name=f"{self.name}-worker", daemon=True).start()

    def put(self, n: int, command: CommandType, data: Any) -> None:
        """Queue the command with number `n`."""
        self._put((n, command, data))

    def put_task(self, task: Callable[[Worker], None]) -> None:
        """Have the worker call `task(worker)` after the commands that are queued now."""
        self._put(task)

    def finish(self) -> None:
        """Let the worker end after the commands that are queued now."""
        self._put(None)

    def halt(self) -> None:
        """Let the worker end before its next command."""
        self._halted = True
        self._put(None)

    def _put(self, item: _Item) -> None:
        self.queue.put(item)

    def wait_until_ended(self, timeout: float) -> bool:
        """Wait for the worker for at most `timeout` seconds and return whether it has ended."""
        return self._ended.wait(timeout)

    def _serve(self) -> None:
        while self._serve_one(self.queue.get()):
            pass

    def _serve_one(self, item: _Item) -> bool:
        """Handle one command or task, or leave; return whether to continue."""
        continues = False
        try:
            if item is None or self._halted:
                self._leaving(self)
            elif isinstance(item, tuple):
                n, command, data = item
                self._handle_timed(n, command, data)
                continues = True
            else:
                item(self)
                if self.queue.empty():
                    self._leaving(self)  # the command before it may have left its acknowledgement to the next
                continues = True
        except BaseException as error:  # noqa: BLE001 - a plug-in's exit() must not end a thread silently
            self._failed(self, error)
        if not continues:
            self._ended.set()
        return continues

    def _handle_timed(self, n: int, command: CommandType, data: Any) -> None:
        began = perf_counter()
        self.n = n
        self._handle(command, data)
        self.handled_s += perf_counter() - began
        self._done(self)


class PooledWorker(Worker):
    """Handles the commands of one queue on any free thread of a pool, still one at a time and in order."""

    def __init__(self, *args: Any, pool: Executor) -> None:
        super().__init__(*args)
        self._pool = pool
        self._lock = Lock()
        self._active = True  # until `start`, nothing is handled

    def start(self) -> None:
        """Start handling the queue."""
        self._pool.submit(self._serve)

    def _put(self, item: _Item) -> None:
        super()._put(item)
        with self._lock:
            if self._active:
                return
            self._active = True
        self._pool.submit(self._serve)

    def _serve(self) -> None:
        while True:
            with self._lock:
                try:
                    item = self.queue.get_nowait()
                except Empty:
                    self._active = False
                    return
            if not self._serve_one(item):
                return


_Item = tuple[int, CommandType, Any] | Callable[[Worker], None] | None  # a command, a task, or the end
