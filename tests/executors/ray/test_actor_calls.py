"""Calls of actors: their results on the event loop, without a reference of Ray, and errors by kind.

The reasons that errors give are among the sentences of this room.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from pitchpipe.executors.ray.actor_calls import ray_errors, result_of

Pending = list[concurrent.futures.Future[Any]]


class Reference:
    """A reference to a result, like Ray's: its future keeps it."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending

    def future(self) -> concurrent.futures.Future[Any]:
        future: Any = concurrent.futures.Future()
        future.object_ref = self
        self._pending.append(future)
        return future


def settle_in_a_thread(pending: Pending, settle: Callable[[concurrent.futures.Future[Any]], None]) -> None:
    """Settle the only future in another thread, as Ray does, while the event loop waits."""
    thread = threading.Thread(target=lambda: settle(pending.pop()))
    thread.start()
    thread.join()


async def test_reference_is_dropped_by_the_thread_that_brings_the_result() -> None:
    pending: Pending = []
    reference = Reference(pending)
    is_held = weakref.ref(reference)
    outcome = result_of(reference)
    del reference
    assert is_held() is not None
    settle_in_a_thread(pending, lambda future: future.set_result(7))
    assert is_held() is None
    assert await outcome == 7


async def test_error_of_a_call_is_raised() -> None:
    pending: Pending = []
    outcome = result_of(Reference(pending))
    settle_in_a_thread(pending, lambda future: future.set_exception(ConnectionError("gone")))
    with pytest.raises(ConnectionError, match="gone"):
        await outcome


async def test_result_of_a_call_for_which_nobody_waits_any_more_is_ignored() -> None:
    pending: Pending = []
    outcome = result_of(Reference(pending))
    outcome.cancel()
    settle_in_a_thread(pending, lambda future: future.set_result(7))
    await asyncio.sleep(0)
    assert outcome.cancelled()


def test_error_of_the_agents_code_is_one_of_rays() -> None:
    assert issubclass(ray_errors().RayTaskError, ray_errors().RayError)
    assert not issubclass(ConnectionError, ray_errors().RayError)
