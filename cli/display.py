"""What a run shows: a live table on a terminal, occasional lines elsewhere, or nothing.

A separate thread draws frozen `Progress` values, so a terminal that blocks (Ctrl-S, a slow connection) does not delay
the experiment.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any

from ..store.reading import counts_text, escaped, experiment_text, left_text, parameters_text, rate_text
from .progress import Progress

__all__ = ["ENDED", "Display", "PlainDisplay", "SilentDisplay", "plain_line"]

_REFRESH = 0.25
_PLAIN_INTERVAL = 5.0
_LONGEST_SILENCE = 15.0
_FIRST_INTERVAL = 1.0
_LAST_WORD = 2.0
_LONGEST = 300  # characters of parameters on a line
ENDED = ("DONE", "STOPPED", "ERROR")


class Display(ABC):
    """Draws the latest `Progress` every `interval` seconds while its `with` block runs."""

    interval = _REFRESH

    def __init__(self) -> None:
        self._latest: Progress | None = None
        self._messages: list[str] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)

    def update(self, progress: Progress) -> None:
        """Store the latest progress; never waits for the terminal."""
        self._latest = progress

    def message(self, text: str) -> None:
        """Show a message that stays, at once."""
        with self._lock:
            self._messages.append(text)
        self._wake.set()

    def __enter__(self) -> Display:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing = True
        self._wake.set()
        self._thread.join(_LAST_WORD)

    def _work(self) -> None:
        try:
            with self.drawing():
                pause = min(self.interval, _FIRST_INTERVAL)
                while not self._closing:
                    self._draw_all()
                    self._wake.wait(pause)
                    self._wake.clear()
                    pause = self.interval
                self._draw_all()
        except OSError:
            pass  # the terminal is gone; the experiment continues

    def _draw_all(self) -> None:
        with self._lock:
            messages, self._messages = self._messages, []
        for message in messages:
            self.write(message)
        if self._latest is not None:
            self.draw(self._latest)

    def drawing(self) -> AbstractContextManager[Any]:
        """Return the context in which drawing happens."""
        return nullcontext()

    @abstractmethod
    def write(self, text: str) -> None:
        """Print a line that stays."""

    @abstractmethod
    def draw(self, progress: Progress) -> None:
        """Draw the progress."""


class SilentDisplay(Display):
    """A display that shows messages (warnings) only."""

    def __init__(self, errors: IO[str]) -> None:
        super().__init__()
        self._errors = errors

    def write(self, text: str) -> None:
        """Print a message."""
        print(text, file=self._errors, flush=True)

    def draw(self, progress: Progress) -> None:
        """Show nothing."""


class PlainDisplay(SilentDisplay):
    """A display that prints a line on a change, at most every 5 seconds, and an occasional line without one."""

    interval = _PLAIN_INTERVAL

    def __init__(self, output: IO[str], errors: IO[str]) -> None:
        super().__init__(errors)
        self._output = output
        self._drawn: tuple[object, ...] = ()
        self._quiet_since = 0.0

    def draw(self, progress: Progress) -> None:
        """Print a line if it contains something new, or if the last one was long ago."""
        best = (*progress.best[:1], progress.front, progress.closest)
        facts = (progress.status, progress.counts, best, progress.waiting_for, progress.warnings)
        # The result reports the end.
        is_due = facts != self._drawn or progress.elapsed >= self._quiet_since + _LONGEST_SILENCE
        if is_due and not self._closing and progress.status not in ENDED:
            self._drawn, self._quiet_since = facts, progress.elapsed
            print(escaped(plain_line(progress)), file=self._output, flush=True)


def plain_line(progress: Progress) -> str:
    """Return the progress on one line."""
    of = f"/{progress.total}" if progress.total is not None else ""
    parts = [
        ": ".join(filter(None, (progress.clock, experiment_text(progress.status)))),
        f"{progress.finished}{of} trials",
    ]
    parts.append(counts_text(progress.counts))
    if progress.rate:
        parts.append(rate_text(progress.rate))
    if progress.remaining is not None and progress.status != "STOPPING":
        parts.append(left_text(progress.remaining, progress.is_bound))
    if len(progress.best) == 1:
        best = progress.best[0]
        parameters = parameters_text(best.parameters)
        shown = parameters if len(parameters) <= _LONGEST else f"{parameters[:_LONGEST]}…"
        parts.append(f"best {best.text} ({best.where}: {shown})")
    parts += [progress.front, progress.closest]
    if progress.waiting:
        parts.append(f"waiting: {progress.waiting}")
    parts += progress.warnings
    return "; ".join(part for part in parts if part)
