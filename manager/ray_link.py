"""A line to an agent that is a Ray actor.

Calls are made on the event loop; their answers come back from Ray's threads by `call_soon_threadsafe`. What
is sent in one turn of the loop leaves in one call, together with the poll if one is due: a trial costs one
call.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import secrets
from collections.abc import Callable
from typing import Any

from .agent_executor import AgentLink, Listener

__all__ = ["RayLink"]

_log = logging.getLogger(__name__)

# An agent that is told to shut down and does not is killed so long after the grace of its trial.
_SHUTDOWN_MARGIN = 2.0
_KILL_TIMEOUT = 10.0


class RayLink(AgentLink):
    """Makes or takes an actor (`find`, run in a thread: Ray may take its time) and talks to it."""

    def __init__(
        self, agent: str, find: Callable[[], Any], hello: dict[str, Any], listener: Listener
    ) -> None:
        self._agent = agent
        self._hello = hello
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._session = secrets.token_hex(8)
        self._number = 0
        self._actor: Any = None
        self._unsent: list[dict[str, Any]] = []
        self._poll_after: int | None = None
        self._flush_is_due = False
        self._closing = False
        self._gone = asyncio.Event()
        self._standing = self._loop.create_task(self._stand(find))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message that has no answer, at the end of this turn of the loop."""
        self._unsent.append(message)
        self._flush_soon()

    def poll(self, after: int) -> None:
        """Ask for the next batch, at the end of this turn of the loop."""
        self._poll_after = after
        self._flush_soon()

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and wait for its answer; raises ConnectionError if the agent goes away."""
        await self._standing
        if self._actor is None or self._gone.is_set():
            raise ConnectionError("the agent is gone")
        try:
            return await asyncio.wrap_future(self._actor.ask.remote(message).future())
        except _ray_errors() as error:
            raise ConnectionError(_reason(error)) from error

    def kill(self) -> None:
        """Kill the actor's process."""
        self._loop.create_task(self._kill())

    async def close(self, grace: float) -> None:
        """Ask the agent to shut down, and kill it if it does not; returns when its process is gone."""
        self._closing = True
        await self._standing
        if self._actor is None:
            return
        self.send({"op": "shutdown"})
        if not await self._wait_gone(grace + _SHUTDOWN_MARGIN):
            await self._kill()
            await self._wait_gone(_KILL_TIMEOUT)

    async def _stand(self, find: Callable[[], Any]) -> None:
        try:
            self._actor = await asyncio.to_thread(find)
        except (*_ray_errors(), ValueError) as error:
            self._lose(_reason(error))
            return
        self._expect(self._actor.connect.remote(self._session, self._hello), lambda answer: None)
        self._flush_soon()
        self._watch()

    def _watch(self) -> None:
        """One call always waits in the actor: it fails when the actor's process ends."""
        call = self._actor.until_replaced.remote(self._session)
        self._expect(call, lambda answer: self._lose("another manager has taken over its agent"))

    def _flush_soon(self) -> None:
        if self._actor is not None and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._gone.is_set():
            return
        messages, self._unsent = self._unsent, []
        after, self._poll_after = self._poll_after, None
        number, self._number = self._number, self._number + 1
        if after is None:
            self._expect(self._actor.tell.remote(self._session, number, messages), self._complain)
        else:
            call = self._actor.exchange.remote(self._session, number, messages, after)
            self._expect(call, self._take_batch)

    def _expect(self, call: Any, then: Callable[[Any], None]) -> None:
        """Hand the answer of a call to `then` on the loop; its failure means that the agent is gone."""

        def done(answer: concurrent.futures.Future[Any]) -> None:
            try:
                self._loop.call_soon_threadsafe(self._settle, answer, then)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        call.future().add_done_callback(done)

    def _settle(self, answer: concurrent.futures.Future[Any], then: Callable[[Any], None]) -> None:
        error = answer.exception()
        if error is not None:
            self._lose(_reason(error))
        elif not self._gone.is_set():
            then(answer.result())

    def _take_batch(self, batch: dict[str, Any]) -> None:
        self._complain(batch.pop("errors", []))
        if batch["events"]:
            self._listener.on_batch(self._agent, batch)
        elif self._poll_after is None:
            self.poll(batch["cursor"])

    def _complain(self, errors: list[dict[str, Any]]) -> None:
        for error in errors:
            _log.warning("agent %s: %s", self._agent, error.get("error", error))

    async def _kill(self) -> None:
        await self._standing
        if self._actor is not None:
            await asyncio.to_thread(_kill_actor, self._actor)

    async def _wait_gone(self, timeout: float) -> bool:
        try:
            await asyncio.wait_for(self._gone.wait(), timeout)
        except TimeoutError:
            return False
        return True

    def _lose(self, reason: str) -> None:
        if self._gone.is_set():
            return
        self._gone.set()
        if not self._closing:
            self._listener.on_lost(self._agent, reason)


def _kill_actor(actor: Any) -> None:
    import ray

    ray.kill(actor, no_restart=True)


def _ray_errors() -> tuple[type[BaseException], ...]:
    from ray.exceptions import RayError

    return (RayError,)


def _reason(error: BaseException) -> str:
    """Why an agent is lost, in one sentence without Ray's page of advice."""
    from ray.exceptions import ActorUnavailableError, ActorUnschedulableError, RayActorError, RayTaskError

    if isinstance(error, RayTaskError):
        return f"its agent failed: {str(error).strip().splitlines()[-1]}"
    if isinstance(error, ActorUnavailableError):
        return "its agent cannot be reached (its node may be gone)"
    if isinstance(error, ActorUnschedulableError):
        return f"its agent cannot be placed: {_first_line(error)}"
    if isinstance(error, RayActorError):
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
