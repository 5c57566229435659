"""Work that no caller awaits: its owner learns of every failure; blocking calls in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from pitchpipe.executors.tasks import Tasks, in_daemon_thread


def fail(*arguments: object) -> None:
    raise ValueError("disk")


async def fail_later() -> None:
    await asyncio.sleep(0)
    fail()


def when_done(tasks: Tasks) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    tasks.when_done(future, fail)
    future.set_result(None)


@pytest.mark.parametrize(
    "begin",
    [
        lambda tasks: tasks.start(fail_later()),
        lambda tasks: tasks.soon(fail),
        lambda tasks: tasks.later(0.0, fail),
        lambda tasks: tasks.guarded(fail),
        when_done,
    ],
)
async def test_owner_receives_the_error(begin: Callable[[Tasks], object]) -> None:
    received: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
    begin(Tasks(received.set_result))
    error = await asyncio.wait_for(received, 30)
    assert (type(error), str(error)) == (ValueError, "disk")


async def test_task_that_is_cancelled_has_not_failed() -> None:
    errors: list[Exception] = []
    tasks = Tasks(errors.append)
    task = tasks.start(asyncio.Event().wait())  # type: ignore[arg-type]
    tasks.cancel()
    await tasks.wait(30)
    assert task.cancelled()
    assert errors == []


def test_error_in_a_daemon_thread_reaches_the_task_that_waits() -> None:
    def fail() -> None:
        raise LookupError("x")

    with pytest.raises(LookupError):
        asyncio.run(in_daemon_thread(fail))


@pytest.mark.parametrize("stay", [True, False])
async def test_thread_stays_if_asked_to(stay: bool) -> None:
    thread = await in_daemon_thread(threading.current_thread, stay=stay)
    thread.join(0.1 if stay else 30.0)
    assert thread.is_alive() is stay
