"""The results of Ray's calls, on the event loop.

Ray ends this process if its last reference to a result is dropped by one thread just as another one disconnects, and
`ray.shutdown` runs in a thread of its own. So the event loop holds none: they are dropped in Ray's own threads, which
end before it disconnects.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from typing import Any

from ..daemon_thread import settle_later


def result_of(call: Any) -> asyncio.Future[Any]:
    """Return a future of the running loop with the result of a call, or its error."""
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(result: concurrent.futures.Future[Any]) -> None:
        error = result.exception()
        finish = outcome.set_exception if error is not None else outcome.set_result
        settle_later(outcome, functools.partial(finish, result.result() if error is None else error))

    call.future().add_done_callback(done)
    return outcome
