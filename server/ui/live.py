"""Keeps a page up to date while its experiment runs: one question a second to the store, answered in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...store.reading import EventPage, ExperimentView

__all__ = ["Live"]

Event = dict[str, Any]
Update = Callable[[list[Event]], Awaitable[None]]
_PERIOD = 1.0
_MOST = 5000


class Live:
    """Calls the parts of a page with what has happened since the last time.

    An update gets the events of the feed; an empty list says that anything may have changed. Nothing is called while
    nothing happens. What goes wrong is told by `on_trouble`, once, and asked again.
    """

    def __init__(self, view: ExperimentView, on_trouble: Callable[[str], None]) -> None:
        self._view = view
        self._on_trouble = on_trouble
        self._updates: list[Update] = []
        self._ticks: list[Callable[[], Awaitable[None]]] = []
        self._cursor: str | None = None
        self._trouble = ""

    def on_change(self, update: Update) -> None:
        """Have `update` called when something has happened."""
        self._updates.append(update)

    def on_tick(self, tick: Callable[[], Awaitable[None]]) -> None:
        """Have `tick` called once a second, for what changes without the store, such as a log."""
        self._ticks.append(tick)

    async def begin(self) -> None:
        """Note where the experiment stands: what happens from now on is told, also while the page is being made."""
        self._cursor = (await asyncio.to_thread(self._view.events)).cursor

    def keep_up(self) -> None:
        """Look once a second, as long as the page is open; it belongs to the part of the page that is being made."""
        from nicegui import ui

        ui.timer(_PERIOD, self._look, immediate=False)

    async def _look(self) -> None:
        from ...store import StoreError

        try:
            page = await asyncio.to_thread(self._view.events, self._cursor, _MOST)
            self._cursor = page.cursor
            if page.events or page.reset:
                await self._tell(page)
            for tick in self._ticks:
                await tick()
        except (StoreError, OSError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._on_trouble(self._trouble)

    async def _tell(self, page: EventPage) -> None:
        for update in self._updates:
            await update([] if page.reset else page.events)
