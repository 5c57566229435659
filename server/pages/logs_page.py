"""The page with the logs of the manager, the dispatcher and the agents, as they are written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import partial

from nicegui import html, ui

from ...store.reading import FilePiece, Follow
from ...telling import escaped
from ..experiments import Experiments
from .elements import attributed
from .frame import experiment_frame

_MEANINGS = {
    "manager.log": "manager: its actions and errors",
    "dispatcher.log": "dispatcher: the tuner, the assessor and their output",
    "dispatcher.out": "dispatcher: output before its log started",
    "agents.log": "agents: the processes that run trials",
}


async def logs_page(experiments: Experiments, experiment_id: str, name: str = "") -> None:
    """Show one of the logs as it grows; `name` is the one to start with."""
    async with experiment_frame(experiments, experiment_id, "Logs", "logs") as (view, _, live):
        files = [file.name for file in await asyncio.to_thread(view.logs)]
        html.h1("Logs").classes("pp-hidden")
        if not files:
            html.p("There are no logs yet.").classes("pp-panel")
            return
        first = name if name in files else "manager.log" if "manager.log" in files else files[0]
        with html.section().classes("pp-panel pp-stack").props('aria-label="Log"'):
            with html.div().classes("pp-row"):
                options = {file: _MEANINGS.get(file, file) for file in files}
                chosen = ui.select(options, label="Log", value=first)
                chosen.props("outlined dense").style("min-width: 20rem")
            log = LogView("Log", partial(view.log, first), tall=True)
            await log.look()
        chosen.on_value_change(lambda event: log.start_with(partial(view.log, event.value)))
        live.on_tick(log.look)


_FIRST_LINES = 500
_MOST_LINES = 3000
_DRAWING = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-B0-2])")
_LONGEST = 4000
_NOT_YET = "Nothing has been written yet."


class LogView:
    """Shows a growing file; `read` returns a piece of it, and raises `LookupError` while there is no file."""

    def __init__(self, name: str, read: Callable[[Follow], FilePiece], *, tall: bool = False) -> None:
        self._read = read
        self._offset: int | None = None
        self._rest = ""
        self._is_looking = False
        self._log = ui.log(max_lines=_MOST_LINES).classes("pp-log" + (" tall" if tall else ""))
        attributed(self._log.props("role=log tabindex=0"), aria_label=name)
        self._empty = ui.label(_NOT_YET).classes("pp-dim")
        self._show_box(False)

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

    async def start_with(self, read: Callable[[Follow], FilePiece]) -> None:
        """Switch to another file."""
        self._read, self._offset, self._rest = read, None, ""
        self._log.clear()
        self._empty.set_text(_NOT_YET)
        self._show_box(False)
        await self.look()

    def end(self) -> None:
        """Show the last line although it is incomplete: the file no longer grows."""
        self._empty.set_text("Nothing was written.")
        if self._rest:
            self._add("\n")

    def _show_box(self, has_lines: bool) -> None:
        """Show the box, or the sentence in its place."""
        self._log.set_visibility(has_lines)
        self._empty.set_visibility(not has_lines)

    def _add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > _LONGEST:
            lines, self._rest = [*lines, self._rest], ""
        for line in lines[-_MOST_LINES:]:
            self._log.push(_clean_line(line) or " ")
        if lines:
            self._show_box(True)


def _clean_line(line: str) -> str:
    """Return a line as a terminal would show it, without overwritten text and colours; escape other control characters.

    >>> _clean_line("10 %\\r50 %\\r\\x1b[32m100 %\\x1b[0m")
    '100 %'
    """
    return escaped(_DRAWING.sub("", line.rstrip("\r").rpartition("\r")[2]), keep="\t")[:_LONGEST]
