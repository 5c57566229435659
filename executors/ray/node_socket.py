"""The socket of an agent on the manager's own node, which costs much less than calls of its actor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...trial_agent import Hello
from ..agent_link import Listener
from ..socket_link import SocketLink


class NodeSocketLink(SocketLink):
    """Carries the messages of a `RayLink` while it lasts; those that may have to be sent again go by calls then.

    `kill` is called for an agent that has been silent for `timeout` seconds.
    """

    is_made_again = False

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
        self._kill = kill

    async def is_open(self) -> bool:
        """Wait until the agent has replied, or cannot be reached here; return whether it has replied."""
        said = await self.hello()
        self._path.unlink(missing_ok=True)  # it is for one manager
        return said is not None and not self._closing

    def kill(self) -> None:
        """Give the agent up."""
        self._kill()

    async def close(self, grace: float) -> None:
        """Close the connection; the agent stays."""
        del grace
        self.drop()
