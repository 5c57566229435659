"""The two sides of a connection to an agent: what the executor may ask of it, and what it reports to the executor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from ..trial_agent import Event, Request

Attempt = tuple[str, int]
"""The trial's id and the number of the attempt."""


class Listener(ABC):
    """Receives what an agent reports; called on the event loop's thread."""

    def on_met(self, agent: str, running: Collection[Attempt], seen: Collection[Attempt]) -> None:  # noqa: B027
        """Note which attempts an agent runs, and which it has run, before its first batch (a hook)."""

    @abstractmethod
    def on_batch(self, agent: str, events: Sequence[Event], cursor: int) -> None:
        """Take the reply to `poll`: events and the number of the last one."""

    def on_silent(self, agent: str, is_silent: bool) -> None:  # noqa: B027  (a hook: Ray knows better)
        """Note that the agent has given no sign of life for some seconds; with False, that it does again."""

    @abstractmethod
    def on_lost(self, agent: str, reason: str) -> None:
        """Note that the agent is gone or can no longer be reached; called once."""

    def on_failure(self, error: Exception) -> None:
        """Take the error of work that no caller awaits."""
        raise error


class AgentLink(ABC):
    """A connection to one agent; messages sent before it is established are kept until it is.

    A link may keep requests and polls until `flush`, so that they leave together.
    """

    @abstractmethod
    def send(self, request: Request) -> None:
        """Send a request that has no reply (a `RunSpec`, `Start`, `Kill`)."""

    @abstractmethod
    def poll(self, after: int) -> None:
        """Acknowledge the events up to `after` and ask for the next; they arrive through `Listener.on_batch`."""

    def flush(self) -> None:  # noqa: B027  (a hook: a link may send at once)
        """Send now, in one write, what was kept so far."""

    @abstractmethod
    async def ask(self, request: Request) -> dict[str, Any]:
        """Send a request and wait for its reply (`ReadFile`)."""

    @abstractmethod
    def kill(self) -> None:
        """End the agent at once; `Listener.on_lost` is called when it is gone."""

    @abstractmethod
    async def close(self, grace: float) -> None:
        """End the agent and all that it runs; return when it is gone."""
