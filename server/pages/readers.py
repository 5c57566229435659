"""Readers, who opened a page with the token for reading: neither their pages nor their events change anything."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import Client, core, ui

from ..security import reads_only

# Messages that a browser sends about a page, which they name; NiceGUI takes them from any connection.
_MESSAGES = ("event", "javascript_response")


def may_change() -> bool:
    """Return whether the user of the page that is being built, or has sent an event, may change anything."""
    return not reads_only(ui.context.client.request.scope)


def keep_to_their_pages() -> None:
    """Ignore what the connection of a reader sends about another user's page; call it once per process.

    Without this only the random name of a page would protect it.
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
