"""Drives a trial function step by step: it runs in a thread that waits in each report."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .checkpoint import write_data
from .current_trial import TrialStopped, metric_text
from .trial_threads import taken_over

if TYPE_CHECKING:
    from .checkpoint import Fill
    from .current_trial import ReportKind

__all__ = ["StepwiseRun"]


class StepwiseRun:
    """The thread of one function, and the channel through which it passes on its results one by one.

    >>> run = StepwiseRun(lambda parameters: parameters["x"], {"x": 0.5})
    >>> run.step(), run.close()
    ({'default': 0.5, 'done': True}, None)
    """

    experiment_id = trial_id = "STANDALONE"
    sequence_id = 0
    budget: float | None = None
    seed: int | None = None

    def __init__(self, function: Callable[[dict[str, Any]], Any], parameters: dict[str, Any]) -> None:
        self.checkpoint: str | None = None
        self._saved: str | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="trial-")
        self._function = function
        self._parameters = parameters
        self._go, self._there = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._result: dict[str, Any] = {}
        self._error: BaseException | None = None
        self._over = self._closing = False

    def step(self) -> dict[str, Any]:
        """Let the function run up to its next report; raise what it raises."""
        if not self._over:
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, daemon=True)
                self._thread.start()
            else:
                self._go.release()
            self._there.acquire()
        if self._error is not None:
            raise self._error
        return {**self._result, "done": self._over}

    def close(self) -> None:
        """Stop the function in the report where it waits, if any, and wait for its end."""
        self._closing = True
        if self._thread is not None:
            self._go.release()
            self._thread.join()
            self._thread = None
        self._folder.cleanup()

    def copy_checkpoint(self, directory: str) -> None:
        """Copy the function's last checkpoint into a directory."""
        if self._saved is not None:
            write_data(directory, self._saved)

    def go_on_from(self, data: Any) -> None:
        """Give the function a checkpoint: a dict, or a path."""
        self.checkpoint = self._new_folder()
        write_data(self.checkpoint, data)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters, a new dict each time."""
        return dict(self._parameters)

    def report(self, kind: ReportKind, value: str) -> None:
        """Pass a result on and wait for the next step; pass a final result on at the end."""
        found = json.loads(value)
        self._result = found if isinstance(found, dict) else {"default": found}
        if kind == "intermediate":
            self._there.release()
            self._go.acquire()
        if self._closing:
            raise TrialStopped

    def save(self, fill: Fill) -> None:
        """Keep a checkpoint until the run is closed."""
        folder = self._new_folder()
        fill(folder)
        self._saved = folder

    def _new_folder(self) -> str:
        return tempfile.mkdtemp(dir=self._folder.name)

    def _main(self) -> None:
        try:
            with taken_over(self):
                returned = self._function(self.parameters())
            if returned is not None:
                self.report("final", metric_text(returned))
        except TrialStopped:
            pass
        except BaseException as error:  # noqa: BLE001 - step() raises it again
            self._error = error
        self._over = True
        self._there.release()
