"""The socket of an agent on the manager's own node, which costs much less than calls of its actor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ...trial_agent import Hello, Ping, Poll, Request
from ..agents import Listener
from ..socket_link import SocketLink

__all__ = ["NearLink"]


class NearLink(SocketLink):
    """Carries the messages of a `RayLink` while it lasts, and keeps those that may have to be sent again.

    `kill` is called for an agent that has been silent for `timeout` seconds.
    """

    def __init__(
        self,
        *,
        agent: str,
        path: Path,
        hello: Hello,
        listener: Listener,
        timeout: float,
        kill: Callable[[], None],
    ) -> None:
        super().__init__(agent=agent, path=path, hello=hello, listener=listener, timeout=timeout)
        self._path = path
        self._kill = kill
        self._unhandled: list[Request] = []

    async def is_open(self) -> bool:
        """Wait until the agent has replied, or cannot be reached here; return whether it has replied."""
        said = await self.hello()
        self._path.unlink(missing_ok=True)  # it is for one manager
        return said is not None and not self._closing

    def send(self, request: Request) -> None:
        """Keep a request until `flush`, and until a later batch shows that the agent has handled it."""
        super().send(request)
        if not isinstance(request, Ping):
            self._unhandled.append(request)

    def settle(self) -> None:
        """Note that a batch has come, the reply to the poll: the agent has handled what was sent before that."""
        polls = [number for number, request in enumerate(self._unhandled) if isinstance(request, Poll)]
        del self._unhandled[: polls[0] + 1 if polls else 0]

    @property
    def unhandled(self) -> Sequence[Request]:
        """The requests of which it is not known whether the agent has handled them."""
        return self._unhandled

    def kill(self) -> None:
        """Give the agent up."""
        self._kill()

    async def close(self, grace: float) -> None:
        """Close the connection; the agent stays."""
        del grace
        self.drop()
