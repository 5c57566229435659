"""Who came with the token of readers: nothing on their pages changes something, and none of their events does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import Client, core, ui

from ..security import reads_only

# Messages that a browser sends about a page, which they name; NiceGUI takes them from any connection.
_MESSAGES = ("event", "javascript_response")


def may_change() -> bool:
    """Return whether who opened the page, which is being built or has sent an event, may change something."""
    return not reads_only(ui.context.client.request.scope)


def keep_to_their_pages() -> None:
    """Ignore what the connection of a reader sends about the page of somebody else; once per process.

    Only the random name of a page would protect it otherwise.
    """
    sockets: Any = core.sio
    for name in _MESSAGES:
        sockets.on(name, partial(_take, sockets, sockets.handlers["/"][name]))


def _take(
    sockets: Any, take: Callable[[str, dict[str, Any]], None], connection: str, message: dict[str, Any]
) -> None:
    page = Client.instances.get(message["client_id"])
    if page is not None and not reads_only(page.request.scope):
        environment = sockets.get_environ(connection)
        if environment is None or reads_only(environment["asgi.scope"]):
            return
    take(connection, message)
