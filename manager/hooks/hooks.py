"""Passes on what was committed to callbacks, lets a stopper judge results, and turns what it decides into events.

Both are users' code. A callback that raises is logged and dropped. A stopper that raises ends nothing there, because a
value that a trial reports must not end the experiment; a stopper that cannot begin ends it in ERROR. A result and the
stopper's decision about it are one commit: what the trial does later, however soon, cannot change that.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, TypeVar

from ...protocol import (
    Json,
    JsonObject,
    Objective,
    Parameters,
    loads,
    main_objective,
    number_in,
    parameters_of,
    with_default,
)
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
from .stoppers import RAISED_BY_USERS, Result, Stopper

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


class PlainTrial(TypedDict):
    """A trial; times are seconds since the epoch.

    `value` is its value for the only objective, or a dict by name for several; it is None without a final result.
    Metrics that are only limited are in `final`.
    """

    trial_id: str
    sequence_id: int
    status: str
    parameters: Parameters
    value: float | dict[str, float] | None
    final: Json
    attempt: int
    intermediate_results: int
    start_time: float | None
    end_time: float | None
    duration: float | None
    reason: str
    failure_kind: str | None
    error: str | None


class PlainCheckpoint(TypedDict):
    """A saved checkpoint, from which the trial continues with result number `sequence`."""

    path: str
    sequence: int
    value: float | None
    time: float
    attempt: int


class PlainExperiment(TypedDict):
    """An experiment; `best` is a list with one trial, or the Pareto front of several objectives."""

    id: str
    status: str
    reason: str
    folder: str
    counts: dict[str, int]
    best: list[PlainTrial]
    run_time: float


class Callback:
    """Base of all callbacks: override the methods that you need.

    Each is called on the thread of the manager's event loop, once what it reports is committed, with dicts of plain
    values that are yours to keep. The experiment waits for it, so keep it short; slow work belongs in a thread of its
    own. A callback that raises is logged and never called again; it does not end the experiment. When a manager is
    killed and the experiment resumed, what was committed before is not reported again.
    """

    def setup(self, experiment: PlainExperiment) -> None:
        """Take note that the experiment runs (again): id, status, folder, counts of trials by status, best."""

    def on_trial_start(self, trial: PlainTrial) -> None:
        """Take note that an attempt of a trial runs; `attempt` is 1 for the first."""

    def on_trial_result(self, trial: PlainTrial, result: Result) -> None:
        """Take a result, intermediate or final (`done`), NaN included."""

    def on_checkpoint(self, trial: PlainTrial, checkpoint: PlainCheckpoint) -> None:
        """Take a saved checkpoint: its `path`, `sequence` (the next result's number), `value` and `time`."""

    def on_trial_pause(self, trial: PlainTrial) -> None:
        """Take note that a trial was paused and its slot is free."""

    def on_trial_recover(self, trial: PlainTrial) -> None:
        """Take note that an attempt failed and the trial will run again."""

    def on_trial_complete(self, trial: PlainTrial) -> None:
        """Take a trial that succeeded, was stopped early or was canceled."""

    def on_trial_error(self, trial: PlainTrial) -> None:
        """Take a trial that has failed for good; `failure_kind`, `reason` and `error` say why."""

    def on_experiment_end(self, experiment: PlainExperiment) -> None:
        """Take the experiment, as in `setup`, once everything has ended."""


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
        experiment: Callable[[], PlainExperiment],
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
        except RAISED_BY_USERS as error:
            return [self._failed(error, clock())]
        return [*self.judge(results(), clock()), *self.end_of_all(clock())]

    def end(self, experiment: Callable[[], PlainExperiment]) -> None:
        """Report the end to the callbacks."""
        if self.callbacks and self._runner is not None:
            self._notify("on_experiment_end", experiment())

    def time_left(self) -> float | None:
        """Return in how many seconds the stopper must be asked again at the latest."""
        if self.stopper is None or self._is_over:
            return None
        return self._ask_stopper(self.stopper.time_left, None)

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
        checkpoint: PlainCheckpoint = {
            "path": f"trials/{trial.sequence_id}/checkpoints/{event.name}",
            "sequence": event.sequence,
            "value": event.value,
            "time": event.time,
            "attempt": event.attempt,
        }
        self._notify("on_checkpoint", self._row(trial), checkpoint)

    def _row(self, trial: Trial) -> PlainTrial:
        return trial_row(trial, self._objectives)

    @property
    def _objectives(self) -> Sequence[Objective]:
        return () if self._runner is None else self._runner.objectives

    def _notify(self, method: str, *rows: Mapping[str, object]) -> None:
        """Call a method of every callback with rows of its own; drop those that raise."""
        for callback in list(self.callbacks):
            try:
                with ending_forks():
                    getattr(callback, method)(*(dict(row) for row in rows))
            except RAISED_BY_USERS:
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
        if self._is_over or stopper is None or not self._ask_stopper(lambda: bool(stopper.stop_all()), False):
            return []
        self._is_over = True
        return [StopRequested(now, self._reason(stopper), "DONE", cause="stopper")]

    def _ask_stopper(self, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """Return what the stopper says, or `otherwise` if it raises; the first time is logged and a warning."""
        try:
            with ending_forks():
                return ask()
        except RAISED_BY_USERS as error:
            if not self.warnings:
                what = f"the stopper {type(self.stopper).__name__} raised {type(error).__name__}: {error}"
                self.warnings = (f"{what}; it ends nothing where it raises",)
                _log.warning("%s", self.warnings[0], exc_info=True)
            return otherwise

    def _reason(self, stopper: Stopper) -> str:
        return self._ask_stopper(lambda: str(stopper.reason()), Stopper.reason(stopper))

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
        if self._ask_stopper(lambda: bool(stopper(metric.trial.trial_id, row)), False) and not is_final:
            reason = self._reason(stopper)
            yield CompleteRequested(now, metric.trial.trial_id, metric.value, reason, cause="stopper")


def _status_of(trial: Trial) -> tuple[TrialStatus, int]:
    """Return the status of a trial, and its last attempt that started."""
    starting = trial.status is TrialStatus.WAITING and trial.is_assigned
    return trial.status, trial.attempt - starting


# ------------------------------------------------------------------ trials, results and the experiment as plain dicts


def trial_row(trial: Trial, objectives: Sequence[Objective] = ()) -> PlainTrial:
    """Return a trial."""
    return {
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "status": trial.status.value,
        "parameters": parameters_of(trial.record),
        "value": _value(trial, objectives),
        "final": None if trial.final is None else loads(trial.final),
        "attempt": trial.attempt,
        "intermediate_results": trial.next_sequence,
        "start_time": trial.start_time,
        "end_time": trial.end_time,
        "duration": _duration(trial),
        "reason": trial.reason,
        "failure_kind": None if trial.kind is None else trial.kind.value,
        "error": trial.error,
    }


def _value(trial: Trial, objectives: Sequence[Objective]) -> float | dict[str, float] | None:
    if trial.values is None:
        return None
    if len(trial.values) == 1:
        return trial.values[0]
    pairs = zip(objectives, trial.values, strict=True)
    values = {objective.name: value for objective, value in pairs if objective.direction is not None}
    return values if len(values) > 1 else next(iter(values.values()))


def _duration(trial: Trial) -> float | None:
    if trial.start_time is None or trial.end_time is None:
        return None
    return trial.end_time - trial.start_time


def result_row(metric: MetricRow, objectives: Sequence[Objective] = ()) -> JsonObject:
    """Return one reported result: what was reported, and the trial and its progress.

    The main one of the `objectives` is also called `default`, and a bare number has both names.

    A reported key never replaces a key that is added here, because stoppers rely on those. A reported `done` that is
    true, or 1, counts: with `stop={"done": True}` a trial can end itself.
    """
    trial, value = metric.trial, loads(metric.value)
    main = main_objective(objectives).name
    reported = with_default(value if isinstance(value, dict) else {main: value}, main)
    is_final = metric.kind == "FINAL"
    began = trial.start_time if trial.start_time is not None else metric.time
    return {
        **reported,
        "trial_id": trial.trial_id,
        "sequence_id": trial.sequence_id,
        "parameters": parameters_of(trial.record),
        "training_iteration": max(1, trial.next_sequence) if is_final else metric.sequence + 1,
        "attempt": metric.attempt,
        "done": is_final or number_in(reported, "done") > 0,
        "time": metric.time,
        "time_total_s": metric.time - began,
    }


def experiment_row(runner: TrialRunner, folder: Path, now: float) -> PlainExperiment:
    """Return the experiment."""
    return {
        "id": runner.experiment_id,
        "status": runner.status.value,
        "reason": runner.reason,
        "folder": str(folder),
        "counts": {status.value: count for status, count in runner.counts.items() if count},
        "best": [trial_row(trial, runner.objectives) for trial in runner.best.front],
        "run_time": runner.elapsed(now),
    }
