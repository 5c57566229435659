"""What a run shows: a live table on a terminal (`live_table.py`), occasional lines elsewhere, or nothing.

The manager's loop reads its state into frozen `RunProgress` values, and a separate thread draws them, so that a
terminal that blocks (Ctrl-S, a slow connection) does not delay the experiment.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import IO, Any

from ..manager import Manager
from ..runner import RateMeter
from ..telling import STARTING, ProgressLines, RunProgress

_REFRESH = 0.25
_PLAIN_INTERVAL = 5.0
_FIRST_INTERVAL = 1.0
_LAST_WORD = 2.0


class Display(ABC):
    """Draws the latest `RunProgress` every `interval` seconds while its `with` block runs."""

    interval = _REFRESH

    def __init__(self) -> None:
        self._latest: RunProgress | None = None
        self._messages: list[str] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="display", daemon=True)

    def update(self, progress: RunProgress) -> None:
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
    def draw(self, progress: RunProgress) -> None:
        """Draw the progress."""


class SilentDisplay(Display):
    """A display that shows messages (warnings) only."""

    def __init__(self, errors: IO[str]) -> None:
        super().__init__()
        self._errors = errors

    def write(self, text: str) -> None:
        """Print a message."""
        print(text, file=self._errors, flush=True)

    def draw(self, progress: RunProgress) -> None:
        """Show nothing."""


class PlainDisplay(SilentDisplay):
    """A display that prints a line on a change, at most every 5 seconds, and an occasional line without one."""

    interval = _PLAIN_INTERVAL

    def __init__(self, output: IO[str], errors: IO[str]) -> None:
        super().__init__(errors)
        self._output = output
        self._lines = ProgressLines()

    def draw(self, progress: RunProgress) -> None:
        """Print a line if it contains something new, or if the last one was long ago."""
        if not self._closing and (line := self._lines.next(progress)) is not None:
            print(line, file=self._output, flush=True)


class ProgressMeter:
    """Reads the progress from a manager; must be called on the thread of its loop."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._rate = RateMeter()
        self._began: float | None = None

    def read(self, now: float) -> RunProgress:
        """Return the state of the experiment; `now` is in seconds since the epoch."""
        config, runner = self._manager.config, self._manager.runner
        self._began = now if self._began is None else self._began
        progress = RunProgress(
            experiment_id=self._manager.folder.experiment_id,
            name=config.experiment_name or "",
            status=STARTING,
            elapsed=now - self._began,
            total=config.max_trial_number,
            waiting_for="Ray is starting" if config.training_service.platform == "ray" else "",
        )
        if runner is None:
            return progress
        progress = RunProgress.of(
            runner,
            now,
            self._rate,
            experiment_id=progress.experiment_id,
            name=progress.name,
            total=config.max_trial_number,
            longest=config.max_experiment_duration,
        )
        return replace(progress, warnings=tuple(self._manager.warnings()))
