"""What trackers of experiments share: a run for each trial, written by a thread of its own."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ..manager.hooks import Callback
from ..protocol import Json, Parameters, number_in
from ..sdk import flat_arguments

Row: TypeAlias = Mapping[str, Json]
TrackerRun: TypeAlias = Any
"""What stands for a run in the library of a tracker."""

_NOT_METRICS = frozenset({"trial_id", "sequence_id", "parameters", "attempt", "done"})
_NOT_METRICS |= {"training_iteration", "time", "time_total_s"}
_log = logging.getLogger(__name__)


class RunListener(Callback):
    """Passes what happens in an experiment to a tracker, in order and on one thread: a slow tracker delays no trial.

    A subclass opens, fills and closes runs. If one of its methods raises, the error is logged, and the tracker is no
    longer called. The end of the experiment waits until the tracker has received everything.
    """

    def __init__(self) -> None:
        self._runs: dict[str, TrackerRun] = {}
        self._worker: ThreadPoolExecutor | None = None
        self._has_failed = threading.Event()

    # for subclasses to override; all are called on the thread of the tracker

    def open_experiment(self, experiment: Row) -> None:
        """Prepare the tracker for an experiment that begins or continues."""

    def open_run(self, trial: Row, parameters: Parameters) -> TrackerRun:
        """Return a new run, or the one that an earlier manager opened for this trial."""
        raise NotImplementedError

    def log(self, run: TrackerRun, metrics: Mapping[str, float], step: int) -> None:
        """Take the numbers of a result; `step` is 1 for the first."""
        raise NotImplementedError

    def close_run(self, run: TrackerRun, trial: Row) -> None:
        """End a run as its trial ended."""
        raise NotImplementedError

    def close_experiment(self, experiment: Row) -> None:
        """Take the outcome of the experiment. All runs have been closed before."""

    # what the manager calls

    def setup(self, experiment: Row) -> None:
        """Begin."""
        self._worker = ThreadPoolExecutor(1, "tracker")
        self._pass_on(self.open_experiment, experiment)

    def on_trial_start(self, trial: Row) -> None:
        """Open a run for the first attempt of a trial."""
        self._pass_on(self._open, trial)

    def on_trial_result(self, trial: Row, result: Row) -> None:
        """Log the numbers of a result."""
        numbers = {
            name: value for name, value in result.items() if name not in _NOT_METRICS and _is_number(value)
        }
        self._pass_on(self._log, trial, numbers, result["training_iteration"])

    def on_trial_complete(self, trial: Row) -> None:
        """Close the run."""
        self._pass_on(self._close, trial)

    on_trial_error = on_trial_complete

    def on_experiment_end(self, experiment: Row) -> None:
        """Wait until the tracker has everything."""
        self._pass_on(self.close_experiment, experiment)
        if self._worker is not None:
            self._worker.shutdown()

    def _open(self, trial: Row) -> None:
        if trial["trial_id"] not in self._runs:
            self._runs[trial["trial_id"]] = self.open_run(trial, flat_arguments(trial["parameters"]))

    def _log(self, trial: Row, numbers: Mapping[str, float], step: int) -> None:
        self._open(trial)  # it may have started under an earlier manager
        self.log(self._runs[trial["trial_id"]], numbers, step)

    def _close(self, trial: Row) -> None:
        if trial["start_time"] is not None:
            self._open(trial)
            self.close_run(self._runs.pop(trial["trial_id"]), trial)

    def _pass_on(self, action: Callable[..., None], *rows: Any) -> None:
        if self._worker is not None:
            self._worker.submit(self._do, action, *rows)

    def _do(self, action: Callable[..., None], *rows: Any) -> None:
        if self._has_failed.is_set():
            return
        try:
            action(*rows)
        except Exception:  # noqa: BLE001  (any error of the tracker's library)
            self._has_failed.set()
            _log.exception("%s failed; it gets nothing more", type(self).__name__)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can hold."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (value != value or not math.isnan(number_in(value)))
