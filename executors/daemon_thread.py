"""Blocking calls in threads that cannot keep the interpreter from ending."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_daemon_thread"]

_Result = TypeVar("_Result")


async def in_daemon_thread(work: Callable[[], _Result], *, stay: bool = False) -> _Result:
    """Like `asyncio.to_thread`, in a thread that a stuck call cannot make the interpreter wait for.

    With `stay` the thread lives on when the work is done: the kernel kills Ray's processes with their parent thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(finish: Callable[[], None]) -> None:
        if not done.done():
            finish()

    def run() -> None:
        try:
            finish = functools.partial(done.set_result, work())
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to whoever waits)
            finish = functools.partial(done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, finish)
        if stay:
            threading.Event().wait()

    threading.Thread(target=run, daemon=True).start()
    return await done
