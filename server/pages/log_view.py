"""A log on a page: its last lines at once, and new ones as they are written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from nicegui import ui

from ...store.reading import FilePiece, Follow, escaped
from .elements import attributed

__all__ = ["LogView", "clean_line"]

Read = Callable[[Follow], "FilePiece"]
_FIRST_LINES = 500
_MOST_LINES = 3000
_DRAWING = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-B0-2])")
_LONGEST = 4000


class LogView:
    """Shows a growing file; `read` returns a piece of it, and raises `LookupError` while there is no file."""

    def __init__(self, name: str, read: Read, *, tall: bool = False) -> None:
        self._read = read
        self._offset: int | None = None
        self._rest = ""
        self._is_looking = False
        self._log = ui.log(max_lines=_MOST_LINES).classes("pp-log" + (" tall" if tall else ""))
        attributed(self._log.props("role=log tabindex=0"), aria_label=name)
        self._empty = ui.label("Nothing has been written yet.").classes("pp-dim")

    async def look(self) -> None:
        """Show what has been written since the last time; calls do not overlap, so that nothing is shown twice."""
        if not self._is_looking:
            self._is_looking = True
            try:
                await self._look()
            finally:
                self._is_looking = False

    async def _look(self) -> None:
        follow = Follow(lines=_FIRST_LINES) if self._offset is None else Follow(offset=self._offset)
        try:
            piece = await asyncio.to_thread(self._read, follow)
        except LookupError:
            return
        if self._offset is not None and piece.size < self._offset:
            self._offset, self._rest = None, ""  # the file was started again
            return
        self._offset = piece.next_offset
        self._add(piece.text)

    def start_with(self, read: Read) -> None:
        """Switch to another file."""
        self._read, self._offset, self._rest = read, None, ""
        self._log.clear()
        self._empty.set_visibility(True)

    def end(self) -> None:
        """Show the last line although it is incomplete: the file no longer grows."""
        if self._rest:
            self._add("\n")

    def _add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > _LONGEST:
            lines, self._rest = [*lines, self._rest], ""
        for line in lines[-_MOST_LINES:]:
            self._log.push(clean_line(line) or " ")
        if lines:
            self._empty.set_visibility(False)


def clean_line(line: str) -> str:
    """Return a line as a terminal would leave it, without overwritten text and colours; escape what else is invisible.

    >>> clean_line("10 %\\r50 %\\r\\x1b[32m100 %\\x1b[0m")
    '100 %'
    """
    return escaped(_DRAWING.sub("", line.rstrip("\r").rpartition("\r")[2]), keep="\t")[:_LONGEST]
