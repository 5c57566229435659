"""Waits for disk space: what cannot be written is kept and tried again, and nothing else happens meanwhile.

The disk may be full, a quota used up, or the file system read-only for a while. This also hits trials: the failure of
one is handled when there is space again, and the trial is run again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from ..runner import AttemptEnded, BadReport, Event, StopRequested, Wait, is_disk_full
from ..store import NotWritableError
from ..trial_agent import disk_error

_log = logging.getLogger(__name__)
# No event says that there is space again: seconds between two attempts.
_TRY_AGAIN = 1.0
# A trial that fails while the disk is full, or so long (s) after, may have had no room for its traceback.
_AFTERMATH = 10.0
_FULL = os.strerror(errno.ENOSPC)
_FAILURES = (AttemptEnded, BadReport)


class DiskSpaceGuard:
    """The wait for disk space in an experiment's folder.

    `guarded` calls its argument, and ends the experiment if that fails; `on_space` is called when there is space again.
    """

    def __init__(
        self, folder: Path, guarded: Callable[[Callable[[], None]], None], on_space: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = folder
        self._guarded = guarded
        self._on_space = on_space
        self._held: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._problem = self._awaited = ""
        self._last_full = -math.inf  # by the loop's clock

    @property
    def is_awaited(self) -> bool:
        """Whether something waits to be written until there is space."""
        return self._held is not None

    def warnings(self) -> list[str]:
        """Return what the experiment waits for, as a sentence; nothing if it does not wait."""
        return [f"{self._problem}: the experiment waits for {self._awaited}"] if self._problem else []

    def waits(self) -> Iterator[Wait]:
        """Yield what must be possible again before the experiment continues."""
        if self._problem:
            yield Wait(
                what=f"{self._awaited}: {self._problem}", then="it can be written, or you stop the experiment"
            )

    def demand(self) -> None:
        """Raise `NotWritableError` if something is not written yet."""
        if self._held is not None:
            raise NotWritableError(self._problem)

    def is_awaited_by(self, events: Sequence[Event]) -> bool:
        """Return whether these events must wait; raise `NotWritableError` if one of them asks for the end."""
        kinds = set(map(type, events))  # in each turn: nearly always, none of them matters
        if not kinds.isdisjoint(_FAILURES) and self._held is None and any(map(_is_of_a_full_disk, events)):
            self.attempt(partial(check_space, self._folder))
        if StopRequested in kinds:
            self.demand()
        return self.is_awaited

    def explain(self, event: AttemptEnded) -> None:
        """Add to the error of a trial that failed on a full disk, or soon after, that it was full."""
        if not event.exit_code or self._loop.time() > self._last_full + _AFTERMATH:
            return
        if not event.killed and not is_disk_full(event.error):
            event.error = f"{event.error or ''}\nOSError: {_FULL}".lstrip()

    def attempt(self, what: Callable[[], None], then: Callable[[], None] = lambda: None) -> None:
        """Call `what`, again and again until there is space for it, and then call `then`."""
        try:
            what()
        except NotWritableError as error:
            if self._held is None:
                _log.warning("%s: the experiment waits for %s", error.what, error.awaited)
            self._held = partial(self.attempt, what, then)
            self._problem, self._awaited = error.what, error.awaited
            self._last_full = self._loop.time()
            self._timer = self._loop.call_later(_TRY_AGAIN, self._try_again)
            return
        held, self._held, self._problem = self._held, None, ""
        then()
        if held is not None:
            again = "there is room" if self._awaited == "room" else "it can be written"
            _log.warning("%s again: the experiment continues", again)
            self._on_space()

    def close(self) -> None:
        """Try no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _try_again(self) -> None:
        if self._held is not None:
            self._guarded(self._held)


def check_space(folder: Path) -> None:
    """Raise `NotWritableError` if a folder cannot be written to."""
    if (why := disk_error(folder)) is not None:
        raise NotWritableError(f"{folder} cannot be written ({why.strerror or why})")


def _is_of_a_full_disk(event: Event) -> bool:
    if isinstance(event, BadReport):
        return event.infra and is_disk_full(event.message)
    return isinstance(event, AttemptEnded) and is_disk_full(event.error)
