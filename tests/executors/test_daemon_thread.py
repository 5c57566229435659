"""Blocking calls in threads for which the interpreter does not wait."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pitchpipe.executors.daemon_thread import in_daemon_thread


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
