"""Blocking calls in threads that cannot keep the interpreter from ending."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread_or_here(work: Callable[[], _Result]) -> _Result:
    """Run short `work` as `in_daemon_thread` does, or on this thread if the machine allows no other one."""
    try:
        done = _started(work)
    except RuntimeError:
        return work()
    return await done


async def in_daemon_thread(work: Callable[[], _Result], *, stay: bool = False) -> _Result:
    """Run `work` as `asyncio.to_thread` does, but in a thread for which the interpreter does not wait at its end.

    It also runs while the interpreter ends, when there is no pool of threads any more.
    With `stay` the thread outlives the work: the kernel kills Ray's processes with the thread that started them.
    """
    return await _started(work, stay=stay)


def _started(work: Callable[[], _Result], *, stay: bool = False) -> asyncio.Future[_Result]:
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

    with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
        future.get_loop().call_soon_threadsafe(settle)
