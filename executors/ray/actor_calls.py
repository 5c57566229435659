"""Calls of an agent's actor, and why an agent is lost, in one sentence: Ray's errors come with a page of advice."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import importlib
import logging
from collections.abc import Callable
from typing import Any

from ..tasks import Heartbeat, Tasks, settle_later

_log = logging.getLogger(__name__)
# How long (s) to wait before a call that did not get through is made again.
_CALL_AGAIN = 0.5


class ActorCalls:
    """Makes the calls of one actor, and again those that do not get through, until the agent is silent for too long.

    So the agent may get a call twice: packets are numbered, and it handles each of them once. After any other error of
    a call that was made by `expect` the agent is lost: `on_failure` is called with the error.
    """

    def __init__(
        self, agent: str, tasks: Tasks, heartbeat: Heartbeat, on_failure: Callable[[BaseException], None]
    ) -> None:
        self.actor: Any = None
        self.gone = asyncio.Event()  # the agent is lost: no more calls
        self.is_closing = False  # none is made again
        self._agent = agent
        self._tasks = tasks
        self._heartbeat = heartbeat
        self._on_failure = on_failure

    def expect(self, then: Callable[[Any], None], method: str, *arguments: Any) -> None:
        """Call a method and pass its result to `then`."""
        if not self.gone.is_set():
            call = self._call(method, arguments)
            self._tasks.when_done(call, lambda result: self._settle(result, then, method, arguments))

    async def reply(self, method: str, *arguments: Any) -> Any:
        """Return the result of a call, which may fail without losing the agent."""
        while not self.gone.is_set():
            try:
                return await self._call(method, arguments)
            except ray_errors().ActorUnavailableError as error:
                if not self._may_call_again(error):
                    raise
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.gone.wait(), _CALL_AGAIN)
        raise ConnectionError("the agent is gone")

    def _call(self, method: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        return result_of(getattr(self.actor, method).remote(*arguments))

    def _settle(
        self,
        result: asyncio.Future[Any],
        then: Callable[[Any], None],
        method: str,
        arguments: tuple[Any, ...],
    ) -> None:
        error = result.exception()
        if self._may_call_again(error):
            self._tasks.later(_CALL_AGAIN, self.expect, then, method, *arguments)
        elif error is not None:
            self._on_failure(error)
        elif not self.gone.is_set():
            self._heartbeat.heard()
            then(result.result())

    def _may_call_again(self, error: BaseException | None) -> bool:
        """Return whether a call did not get through, but may yet; an agent that stays silent is given up."""
        if self.is_closing or self.gone.is_set() or not isinstance(error, ray_errors().ActorUnavailableError):
            return False
        _log.debug("agent %s: a call did not get through: %s", self._agent, error)
        self._heartbeat.start()
        return True


def result_of(call: Any) -> asyncio.Future[Any]:
    """Return a future of the running loop with the result of a call, or its error.

    Ray ends this process if its last reference to a result is dropped by one thread just as another one disconnects,
    and `ray.shutdown` runs in a thread of its own. So the event loop holds none: they are dropped in Ray's own threads,
    which end before it disconnects.
    """
    outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(result: concurrent.futures.Future[Any]) -> None:
        error = result.exception()
        finish = outcome.set_exception if error is not None else outcome.set_result
        settle_later(outcome, functools.partial(finish, result.result() if error is None else error))

    call.future().add_done_callback(done)
    return outcome


def kill_actor(actor: Any) -> None:
    """End the process of an actor for good; blocks while Ray is away."""
    import ray

    ray.kill(actor, no_restart=True)


def ray_errors() -> Any:
    """Return the module of Ray's errors, of which `RayError` is the base.

    With a `RayActorError` the agent is gone, or cannot be reached; an `ActorUnavailableError` of these says that a call
    did not get through, though the agent may live. A `RayTaskError` was raised by the agent's own code.
    """
    return importlib.import_module("ray.exceptions")


def reason_of(error: BaseException) -> str:
    """Return why an agent is lost, in one sentence."""
    errors = ray_errors()
    if isinstance(error, errors.RayTaskError):
        return f"its agent failed: {str(error).strip().splitlines()[-1]}"
    if isinstance(error, ConnectionError):
        return str(error)
    if isinstance(error, errors.ActorUnavailableError):
        return "its agent cannot be reached (its node may be gone)"
    if isinstance(error, errors.ActorUnschedulableError):
        return f"its agent cannot be placed: {_first_line(error)}"
    if isinstance(error, errors.RayActorError):
        return _why_died(str(error))
    return f"its agent is gone ({type(error).__name__}: {_first_line(error)})"


def _why_died(text: str) -> str:
    if "node was terminated" in text or "missing too many heartbeats" in text:
        return "its agent's node is gone"
    if "ray.kill" in text:
        return "its agent was killed"
    if "creation task" in text or "ModuleNotFoundError" in text:
        return f"its agent could not start: {text.strip().splitlines()[-1].strip()}"
    return "its agent's process has ended or was killed"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]
