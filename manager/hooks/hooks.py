"""Tells callbacks and stoppers what was committed, and turns what stoppers say into events.

Both are code of the user's: whatever a callback raises is logged once and the callback dropped; a stopper that raises
ends the experiment, because its rule was part of what was asked for.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...runner import CheckpointSaved, CompleteRequested, Event, StopRequested, Trial, TrialStatus
from .callbacks import Callback
from .rows import result_row, trial_row
from .stoppers import Stopper

if TYPE_CHECKING:
    from ...runner import Changes, MetricRow, TrialRunner

__all__ = ["Hooks"]

_log = logging.getLogger(__name__)


class Hooks:
    """The callbacks and the stopper of one experiment.

    It remembers what each trial was said to be last, so that the same is not said twice.
    """

    def __init__(self, *, callbacks: Iterable[Callback] = (), stopper: Stopper | None = None) -> None:
        self.callbacks = list(callbacks)
        self.stopper = stopper
        self._runner: TrialRunner | None = None
        self._told: dict[str, tuple[TrialStatus, int]] = {}
        self._is_over = False
        self._is_timed = True
        self._judged_next: dict[str, int] = {}

    # ------------------------------------------------------------------ beginning and end

    def begin(
        self,
        runner: TrialRunner,
        results: Callable[[], Iterable[MetricRow]],
        clock: Callable[[], float],
        experiment: Callable[[], dict[str, Any]],
    ) -> list[Event]:
        """The experiment runs (again); `results` of earlier managers are told to the stopper once more.

        Answers what the stopper says about trials and an experiment that had not ended.
        """
        self._runner = runner
        if self.callbacks:
            self._told = {trial.trial_id: _standing(trial) for trial in runner.get_trials()}
            self._tell("setup", experiment())
        if self.stopper is None:
            return []
        try:
            self.stopper.begin(lambda: runner.elapsed(clock()))
        except Exception as error:  # noqa: BLE001  (the user's code)
            return [self._failed(error, clock())]
        return list(self._judged(results(), clock()))

    def end(self, experiment: Callable[[], dict[str, Any]]) -> None:
        """Nothing runs any more."""
        if self.callbacks and self._runner is not None:
            self._tell("on_experiment_end", experiment())

    def time_left(self) -> float | None:
        """In how many seconds the stopper wants to be asked again at the latest."""
        if self.stopper is None or self._is_over or not self._is_timed:
            return None
        try:
            return self.stopper.time_left()
        except Exception:  # noqa: BLE001  (the user's code)
            _log.exception("stopper %s cannot say when it wants to be asked", type(self.stopper).__name__)
            self._is_timed = False
            return None

    # ------------------------------------------------------------------ after each commit

    def after(self, changes: Changes, events: Sequence[Event], now: float) -> list[Event]:
        """Tell what a commit changed; answer what the stopper makes of it."""
        if self.callbacks:
            self._tell_changes(changes, events)
        return [] if self.stopper is None else list(self._judged(changes.metrics, now))

    def _tell_changes(self, changes: Changes, events: Sequence[Event]) -> None:
        for trial in changes.trials.values():
            self._tell_start(trial)
        for metric in changes.metrics:
            self._tell("on_trial_result", self._row(metric.trial), result_row(metric))
        for event in events:
            if isinstance(event, CheckpointSaved):
                self._tell_checkpoint(event)
        for trial in changes.trials.values():
            self._tell_standing(trial)

    def _tell_start(self, trial: Trial) -> None:
        status, attempt = self._told.get(trial.trial_id, (TrialStatus.WAITING, 0))
        if trial.start_time is None or trial.status is TrialStatus.WAITING or status.is_final:
            return
        if trial.attempt > attempt:
            self._told[trial.trial_id] = TrialStatus.RUNNING, trial.attempt
            self._tell("on_trial_start", self._row(trial))

    def _tell_standing(self, trial: Trial) -> None:
        status, attempt = self._told.get(trial.trial_id, (TrialStatus.WAITING, 0))
        if trial.status is status or status.is_final:
            return
        if trial.status is TrialStatus.WAITING:
            self._tell_waiting(trial, status)
        elif trial.status is TrialStatus.PAUSED:
            self._tell("on_trial_pause", self._row(trial))
        elif trial.status.is_final:
            failed = trial.status is TrialStatus.FAILED
            self._tell("on_trial_error" if failed else "on_trial_complete", self._row(trial))
        self._told[trial.trial_id] = trial.status, attempt

    def _tell_waiting(self, trial: Trial, before: TrialStatus) -> None:
        if before is TrialStatus.RUNNING:
            self._tell("on_trial_recover", self._row(trial))

    def _tell_checkpoint(self, event: CheckpointSaved) -> None:
        trial = None if self._runner is None else self._runner.get_trial(event.trial_id)
        if trial is None:
            return
        path = f"trials/{trial.sequence_id}/checkpoints/{event.name}"
        told = {"path": path, "sequence": event.sequence, "value": event.value, "time": event.time}
        self._tell("on_checkpoint", self._row(trial), {**told, "attempt": event.attempt})

    def _row(self, trial: Trial) -> dict[str, Any]:
        objectives = () if self._runner is None else self._runner.objectives
        return trial_row(trial, [objective.name for objective in objectives])

    def _tell(self, method: str, *rows: dict[str, Any]) -> None:
        """Call a method of every callback, each with rows of its own; drop those that raise."""
        for callback in list(self.callbacks):
            try:
                getattr(callback, method)(*(dict(row) for row in rows))
            except (Exception, SystemExit):  # noqa: BLE001  (the user's code)
                self.callbacks.remove(callback)
                name = type(callback).__name__
                _log.exception("callback %s failed in %s and is told nothing more", name, method)

    # ------------------------------------------------------------------ the stopper

    def _judged(self, results: Iterable[MetricRow], now: float) -> Iterator[Event]:
        """Yield what the stopper says about some results, as events."""
        if self._is_over or self.stopper is None or self._runner is None:
            return
        try:
            for metric in results:
                yield from self._judged_trial(self.stopper, metric, now)
            if self.stopper.stop_all():
                self._is_over = True
                yield StopRequested(now, self.stopper.reason(), "DONE", cause="stopper")
        except Exception as error:  # noqa: BLE001  (the user's code)
            yield self._failed(error, now)

    def _failed(self, error: Exception, now: float) -> StopRequested:
        """Its rule was part of what was asked for: without it the experiment does not go on."""
        self._is_over = True
        reason = f"the stopper {type(self.stopper).__name__} raised {type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error))
        return StopRequested(now, reason, "ERROR", trace, cause="stopper")

    def _is_new(self, metric: MetricRow) -> bool:
        """A trial that goes on from a checkpoint reports again what was judged before."""
        if metric.sequence < self._judged_next.get(metric.trial.trial_id, 0):
            return False
        self._judged_next[metric.trial.trial_id] = metric.sequence + 1
        return True

    def _judged_trial(self, stopper: Stopper, metric: MetricRow, now: float) -> Iterator[Event]:
        is_final = metric.kind == "FINAL"
        if not is_final and not self._is_new(metric):
            return
        if stopper(metric.trial.trial_id, result_row(metric)) and not is_final:
            reason = stopper.reason()
            yield CompleteRequested(now, metric.trial.trial_id, metric.value, reason, cause="stopper")


def _standing(trial: Trial) -> tuple[TrialStatus, int]:
    """Return the status of a trial, and its last attempt that was seen to start."""
    starting = trial.status is TrialStatus.WAITING and trial.is_assigned
    return trial.status, trial.attempt - starting
