"""Workers: in order, one at a time, and ending where they should."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pitchpipe.dispatcher.workers import PooledWorker, Worker
from pitchpipe.protocol import CommandType

PATIENCE_S = 20.0


class Log:
    """What a worker handled, was done with, and failed at."""

    def __init__(self) -> None:
        self.handled: list[Any] = []
        self.done: list[int] = []
        self.failed: list[tuple[int, BaseException]] = []
        self.left = -1
        self.release = threading.Event()
        self.release.set()

    def note_done(self, worker: Worker) -> None:
        self.done.append(worker.n)

    def note_leaving(self, worker: Worker) -> None:
        self.left = worker.n

    def note_failed(self, worker: Worker, error: BaseException) -> None:
        self.failed.append((worker.n, error))

    def handle(self, command: CommandType, data: Any) -> None:
        assert self.release.wait(PATIENCE_S)
        if isinstance(data, BaseException):
            raise data
        self.handled.append(data)


@pytest.fixture(params=["own thread", "pool"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], tuple[Log, Worker]]]:
    """Return a function that makes a worker of either kind with its log."""
    pool = ThreadPoolExecutor(3)

    def worker() -> tuple[Log, Worker]:
        log = Log()
        calls = (log.handle, log.note_done, log.note_leaving, log.note_failed)
        own = request.param == "own thread"
        return log, Worker("w", *calls) if own else PooledWorker("w", *calls, pool=pool)

    yield worker
    pool.shutdown()


def put(worker: Worker, *data: Any) -> None:
    for n, item in enumerate(data, 1):
        worker.put(n, CommandType.Ping, item)


def test_commands_are_handled_in_order_then_the_worker_ends(make):
    log, worker = make()
    put(worker, *range(50))
    worker.start()
    worker.finish()
    assert worker.wait_until_ended(PATIENCE_S)
    assert log.handled == list(range(50))
    assert log.done == list(range(1, 51))
    assert log.left == 50


def test_nothing_is_handled_before_the_start(make):
    log, worker = make()
    put(worker, 1)
    assert not worker.wait_until_ended(0.01)
    assert log.handled == []
    worker.start()
    worker.finish()
    assert worker.wait_until_ended(PATIENCE_S)


def test_halted_worker_leaves_the_rest(make):
    log, worker = make()
    log.release.clear()
    worker.start()
    put(worker, *range(10))
    worker.halt()
    log.release.set()
    assert worker.wait_until_ended(PATIENCE_S)
    assert len(log.handled) <= 1


@pytest.mark.parametrize("error", [ValueError("v"), SystemExit(3), KeyboardInterrupt()])
def test_worker_ends_at_a_failure(make, error):
    log, worker = make()
    put(worker, "before", error, "behind")
    worker.start()
    assert worker.wait_until_ended(PATIENCE_S)
    assert log.failed == [(2, error)]
    assert log.left == -1
    assert log.handled == ["before"]


def test_commands_put_from_time_to_time_are_all_handled(make):
    log, worker = make()
    worker.start()
    for i in range(500):
        worker.put(i, CommandType.Ping, i)
        if i % 50 == 0:
            while len(log.handled) <= i:  # lets a pooled worker become idle
                pass
    worker.finish()
    assert worker.wait_until_ended(PATIENCE_S)
    assert log.handled == list(range(500))
