"""Keeps a page up to date while its experiment runs: a query of the store every second, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nicegui import ui

from ...store import StoreError
from ...store.reading import EventPage, ExperimentView, FeedEvent

__all__ = ["Live"]

Update = Callable[[list[FeedEvent]], Awaitable[None]]
_PERIOD = 1.0
_MOST = 5000


class Live:
    """Calls the parts of a page with what has happened since the last time.

    An update gets the events of the feed; an empty list means that anything may have changed. Nothing is called without
    events. A failure is reported once by `on_failure`, and the query is repeated.
    """

    def __init__(self, view: ExperimentView, on_failure: Callable[[str], None]) -> None:
        self._view = view
        self._on_failure = on_failure
        self._updates: list[Update] = []
        self._ticks: list[Callable[[], Awaitable[None]]] = []
        self._cursor: str | None = None
        self._failure = ""

    def on_change(self, update: Update) -> None:
        """Call `update` when something has happened."""
        self._updates.append(update)

    def on_tick(self, tick: Callable[[], Awaitable[None]]) -> None:
        """Call `tick` once a second, for what changes without the store, such as a log."""
        self._ticks.append(tick)

    async def begin(self) -> None:
        """Note the present state: later events are delivered, even those while the page is built."""
        self._cursor = (await asyncio.to_thread(self._view.events)).cursor

    def keep_up(self) -> None:
        """Query once a second while the page is open; the timer belongs to the element being built."""
        ui.timer(_PERIOD, self._look, immediate=False)

    async def _look(self) -> None:
        try:
            page = await asyncio.to_thread(self._view.events, self._cursor, _MOST)
            self._cursor = page.cursor
            if page.events or page.reset:
                await self._notify(page)
            for tick in self._ticks:
                await tick()
        except (StoreError, OSError) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                self._on_failure(self._failure)

    async def _notify(self, page: EventPage) -> None:
        for update in self._updates:
            await update([] if page.reset else page.events)
