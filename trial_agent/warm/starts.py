"""Whether a trial is started warm: only if a zygote of its kind is ready. Nothing ever waits for one."""

from __future__ import annotations

from pathlib import Path

from ..machine_limits import available_bytes
from ..processes import LINUX, size_text
from ..watchdog_client import WatchdogClient
from .launch import Kind, Launch
from .zygotes import Adopted, Zygote

MOST_UNUSED = 5
"""After so many zygotes in a row without a trial no more are made."""

_SHARE = 4  # a zygote may take this part of the available memory


class WarmStarts:
    """The zygote of an agent. It is made for the second trial of the same kind in a row, or for the first if `eager`.

    `start` returns None for a trial that has to be started cold. Then `prepare` makes the next one warm, if possible.
    """

    def __init__(self, watchdog: WatchdogClient) -> None:
        self._watchdog = watchdog
        self._zygote: Zygote | None = None
        self._last: Kind | None = None
        self._refused: Kind | None = None
        self._unused = 0
        self._note: str | None = None
        self._told: set[str] = set()

    def start(self, launch: Launch) -> Adopted | None:
        """Start a trial as a fork of the zygote, if there is a ready one of its kind."""
        zygote = self._zygote
        if zygote is None or not self._is_usable(zygote):
            return None
        kind = _kind_of(launch)
        if kind != zygote.kind or not zygote.is_ready:
            return None
        self._last = kind
        trial = zygote.start(launch)
        if trial is None:  # it was killed, or its files have changed
            self._end(zygote)
        else:
            self._unused = 0
        return trial

    def prepare(self, launch: Launch, folder: Path, *, eager: bool) -> None:
        """Make a zygote for the next trials of this kind, if they are to be expected."""
        try:
            kind = launch.kind
            if not LINUX:
                raise ValueError("warm starts need Linux")
        except ValueError as reason:
            self._note = str(reason)
            return
        is_repeated, self._last = kind == self._last, kind
        if kind == self._refused or not (is_repeated or eager):
            return
        if self._zygote is not None:
            if kind == self._zygote.kind:
                return
            self._end(self._zygote)
        if self._unused >= MOST_UNUSED:
            self._note = f"{MOST_UNUSED} processes in a row that were to start trials have ended without one"
            return
        self._unused += 1
        try:
            self._zygote = Zygote(kind, folder)
        except OSError as error:
            self._refuse(kind, f"{kind.command[0]} cannot be started: {error}")
        else:
            self._watchdog.keep(self._zygote.pid)

    def note(self) -> str | None:
        """Return why trials are not warm, or not wholly; each reason once."""
        note, self._note = self._note, None
        if note is None or note in self._told:
            return None
        self._told.add(note)
        return note

    def close(self) -> None:
        """End the zygote."""
        if self._zygote is not None:
            self._end(self._zygote)

    def _is_usable(self, zygote: Zygote) -> bool:
        was_ready = zygote.is_ready
        lives = zygote.look()
        self._note = zygote.note or self._note
        if not lives:
            self._end(zygote)
            if not zygote.is_ready:
                self._refuse(
                    zygote.kind, zygote.note or f"{zygote.kind.command[0]} ended before it was ready"
                )
        elif zygote.is_ready and not was_ready and (used := zygote.memory()) * _SHARE > available_bytes():
            self._end(zygote)
            self._refuse(zygote.kind, f"memory is short: {size_text(used)} would be kept ready")
            return False
        return lives

    def _refuse(self, kind: Kind, reason: str) -> None:
        self._refused, self._note = kind, reason

    def _end(self, zygote: Zygote) -> None:
        zygote.close()
        self._watchdog.drop(zygote.pid)
        self._zygote = None


def _kind_of(launch: Launch) -> Kind | None:
    try:
        return launch.kind
    except ValueError:
        return None
