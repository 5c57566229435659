"""Waiting for room: what cannot be written for want of it is kept and tried again, and nothing else happens meanwhile.

The disk may be full, a quota used up, or the file system read-only for a while. Trials find out as well as the
database: one that failed while there is no room is judged when there is some, and run again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ..runner import AttemptEnded, Event, StopRequested, is_no_room
from ..trial_agent import no_room
from .errors import NoRoomError

__all__ = ["Room", "check_room"]

_log = logging.getLogger(__name__)
# Nobody tells when there is room again: it is tried so often (s).
_TRY_AGAIN = 1.0


class Room:
    """The room that an experiment has in its folder.

    `guarded` calls what it is given, and ends the experiment if that fails; `go_on` is called when there is room again.
    """

    def __init__(
        self, folder: Path, guarded: Callable[[Callable[[], None]], None], go_on: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._guarded = guarded
        self._go_on = go_on
        self._held: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._trouble = ""

    @property
    def is_awaited(self) -> bool:
        """Is something not written yet for want of room?"""
        return self._held is not None

    def troubles(self) -> list[str]:
        """Return what is wrong, as a sentence, if anything is."""
        return [f"{self._trouble}: the experiment waits for room"] if self._trouble else []

    def demand(self) -> None:
        """Raise `NoRoomError` if something is not written yet."""
        if self._held is not None:
            raise NoRoomError(self._trouble)

    def is_awaited_by(self, events: Sequence[Event]) -> bool:
        """Must these events wait? Raises `NoRoomError` for one that asks for the end, which does not wait."""
        if self._held is None and any(map(_found_no_room, events)):
            self.attempt(partial(check_room, self._folder))
        if any(isinstance(event, StopRequested) for event in events):
            self.demand()
        return self.is_awaited

    def attempt(self, what: Callable[[], None], then: Callable[[], None] = lambda: None) -> None:
        """Do something, and `then` something else; what finds no room is tried again until it finds some."""
        try:
            what()
        except NoRoomError as error:
            if self._held is None:
                _log.warning("%s: the experiment waits until there is room", error.what)
            self._held, self._trouble = partial(self.attempt, what, then), error.what
            self._timer = asyncio.get_running_loop().call_later(_TRY_AGAIN, self._try_again)
            return
        held, self._held, self._trouble = self._held, None, ""
        then()
        if held is not None:
            _log.warning("there is room again: the experiment goes on")
            self._go_on()

    def close(self) -> None:
        """Try no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _try_again(self) -> None:
        if self._held is not None:
            self._guarded(self._held)


def check_room(folder: Path) -> None:
    """Raise `NoRoomError` if there is no room in a folder."""
    if (why := no_room(folder)) is not None:
        raise NoRoomError(f"{folder} cannot be written ({why.strerror or why})")


def _found_no_room(event: Event) -> bool:
    return isinstance(event, AttemptEnded) and is_no_room(event.error)
