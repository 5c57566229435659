"""Passes on what was committed to callbacks, lets a stopper judge results, and turns what it decides into events.

Both are users' code. A callback that raises is logged and dropped. A stopper that raises ends nothing there, because a
value that a trial reports must not end the experiment; one that cannot begin ends it in ERROR. A result and what the
stopper decides about it are one commit: what the trial does later, however soon, cannot change that.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ...protocol import Objective
from ...runner import (
    Changes,
    CheckpointSaved,
    CompleteRequested,
    Event,
    MetricRow,
    StopRequested,
    Trial,
    TrialRunner,
    TrialStatus,
)
from ...trial_agent import ending_forks
from .callbacks import Callback
from .rows import result_row, trial_row
from .stoppers import Stopper

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class Hooks:
    """The callbacks and the stopper of one experiment; nothing is reported to them twice."""

    def __init__(self, *, callbacks: Iterable[Callback] = (), stopper: Stopper | None = None) -> None:
        self.callbacks = list(callbacks)
        self.stopper = stopper
        self.warnings: Sequence[str] = ()
        self._runner: TrialRunner | None = None
        self._notified: dict[str, tuple[TrialStatus, int]] = {}
        self._is_over = False
        self._judged_next: dict[str, int] = {}

    # ------------------------------------------------------------------ beginning and end

    def begin(
        self,
        runner: TrialRunner,
        results: Callable[[], Iterable[MetricRow]],
        clock: Callable[[], float],
        experiment: Callable[[], dict[str, Any]],
    ) -> list[Event]:
        """Begin, or continue: the stopper gets the `results` of earlier managers again. Return what it decides."""
        self._runner = runner
        if self.callbacks:
            self._notified = {trial.trial_id: _status_of(trial) for trial in runner.get_trials()}
            self._notify("setup", experiment())
        if self.stopper is None:
            return []
        try:
            with ending_forks():
                self.stopper.begin(lambda: runner.elapsed(clock()))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the user's code)
            return [self._failed(error, clock())]
        return [*self.judge(results(), clock()), *self.end_of_all(clock())]

    def end(self, experiment: Callable[[], dict[str, Any]]) -> None:
        """Report the end to the callbacks."""
        if self.callbacks and self._runner is not None:
            self._notify("on_experiment_end", experiment())

    def time_left(self) -> float | None:
        """Return in how many seconds the stopper must be asked again at the latest."""
        if self.stopper is None or self._is_over:
            return None
        return self._asked(self.stopper.time_left, None)

    # ------------------------------------------------------------------ after each commit

    def after(self, changes: Changes, events: Sequence[Event]) -> None:
        """Report what a commit changed to the callbacks."""
        if not self.callbacks:
            return
        for trial in changes.trials.values():
            self._notify_start(trial)
        for metric in changes.metrics:
            self._notify("on_trial_result", self._row(metric.trial), result_row(metric, self._objectives))
        for event in events:
            if isinstance(event, CheckpointSaved):
                self._notify_checkpoint(event)
        for trial in changes.trials.values():
            self._notify_status(trial)

    def _notify_start(self, trial: Trial) -> None:
        status, attempt = self._notified.get(trial.trial_id, (TrialStatus.WAITING, 0))
        if trial.start_time is None or trial.status is TrialStatus.WAITING or status.is_final:
            return
        if trial.attempt > attempt:
            self._notified[trial.trial_id] = TrialStatus.RUNNING, trial.attempt
            self._notify("on_trial_start", self._row(trial))

    def _notify_status(self, trial: Trial) -> None:
        status, attempt = self._notified.get(trial.trial_id, (TrialStatus.WAITING, 0))
        if trial.status is status or status.is_final:
            return
        if trial.status is TrialStatus.WAITING:
            if status is TrialStatus.RUNNING:
                self._notify("on_trial_recover", self._row(trial))
        elif trial.status is TrialStatus.PAUSED:
            self._notify("on_trial_pause", self._row(trial))
        elif trial.status.is_final:
            failed = trial.status is TrialStatus.FAILED
            self._notify("on_trial_error" if failed else "on_trial_complete", self._row(trial))
        self._notified[trial.trial_id] = trial.status, attempt

    def _notify_checkpoint(self, event: CheckpointSaved) -> None:
        trial = None if self._runner is None else self._runner.get_trial(event.trial_id)
        if trial is None:
            return
        path = f"trials/{trial.sequence_id}/checkpoints/{event.name}"
        saved = {"path": path, "sequence": event.sequence, "value": event.value, "time": event.time}
        self._notify("on_checkpoint", self._row(trial), {**saved, "attempt": event.attempt})

    def _row(self, trial: Trial) -> dict[str, Any]:
        return trial_row(trial, self._objectives)

    @property
    def _objectives(self) -> Sequence[Objective]:
        return () if self._runner is None else self._runner.objectives

    def _notify(self, method: str, *rows: dict[str, Any]) -> None:
        """Call a method of every callback with rows of its own; drop those that raise."""
        for callback in list(self.callbacks):
            try:
                with ending_forks():
                    getattr(callback, method)(*(dict(row) for row in rows))
            except (Exception, SystemExit):  # noqa: BLE001  (the user's code)
                self.callbacks.remove(callback)
                name = type(callback).__name__
                _log.exception("callback %s failed in %s and is not called again", name, method)

    # ------------------------------------------------------------------ the stopper

    def judge(self, results: Iterable[MetricRow], now: float) -> list[Event]:
        """Return the trials that the stopper ends because of some results, as events."""
        if self._is_over or self.stopper is None:
            return []
        return [event for metric in results for event in self._judged_trial(self.stopper, metric, now)]

    def end_of_all(self, now: float) -> list[Event]:
        """Return the end of the experiment, if the stopper wants it now."""
        stopper = self.stopper
        if self._is_over or stopper is None or not self._asked(lambda: bool(stopper.stop_all()), False):
            return []
        self._is_over = True
        return [StopRequested(now, self._reason(stopper), "DONE", cause="stopper")]

    def _asked(self, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Return what the stopper says, or `otherwise` if it raises; the first time is logged and a warning."""
        try:
            with ending_forks():
                return ask()
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the user's code)
            if not self.warnings:
                what = f"the stopper {type(self.stopper).__name__} raised {type(error).__name__}: {error}"
                self.warnings = (f"{what}; it ends nothing where it raises",)
                _log.warning("%s", self.warnings[0], exc_info=True)
            return otherwise

    def _reason(self, stopper: Stopper) -> str:
        return self._asked(lambda: str(stopper.reason()), Stopper.reason(stopper))

    def _failed(self, error: BaseException, now: float) -> StopRequested:
        """End the experiment: it does not continue without its rule."""
        self._is_over = True
        reason = f"the stopper {type(self.stopper).__name__} raised {type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error))
        return StopRequested(now, reason, "ERROR", trace, cause="stopper")

    def _is_new(self, metric: MetricRow) -> bool:
        """Return whether a result was not judged before; a trial that continues from a checkpoint repeats some."""
        if metric.sequence < self._judged_next.get(metric.trial.trial_id, 0):
            return False
        self._judged_next[metric.trial.trial_id] = metric.sequence + 1
        return True

    def _judged_trial(self, stopper: Stopper, metric: MetricRow, now: float) -> Iterator[Event]:
        is_final = metric.kind == "FINAL"
        if not is_final and not self._is_new(metric):
            return
        row = result_row(metric, self._objectives)
        if self._asked(lambda: bool(stopper(metric.trial.trial_id, row)), False) and not is_final:
            reason = self._reason(stopper)
            yield CompleteRequested(now, metric.trial.trial_id, metric.value, reason, cause="stopper")


def _status_of(trial: Trial) -> tuple[TrialStatus, int]:
    """Return the status of a trial, and its last attempt that started."""
    starting = trial.status is TrialStatus.WAITING and trial.is_assigned
    return trial.status, trial.attempt - starting
