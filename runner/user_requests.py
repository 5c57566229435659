"""Handlers of users' requests (another trial, an end, other limits) and of the deadlines that users set."""

from __future__ import annotations

from dataclasses import fields, replace

from ..protocol import CommandType, import_payload, is_starting_point
from . import events as happened
from .attempts import leave_rung
from .executor_events import ExecutorEvents
from .experiment_rules import ExperimentRules
from .experiment_state import ExperimentStatus, Limits
from .trial import Cause, FailureKind, TrialStatus, Verdict


class UserRequests:
    """Handles the events that come from users and from the clock."""

    def __init__(self, rules: ExperimentRules, executor_events: ExecutorEvents) -> None:
        self._rules = rules
        self._executor = executor_events
        self._trials = rules.trials
        self._state = rules.state
        self._pending = rules.pending
        # Records that max_trial_number leaves out; each manager requests them again.
        self._left_out: list[str] = []

    def why_not_add(self) -> str:
        """Say why no trial can be added; return an empty text if one can."""
        most = self._state.limits.max_trial_number
        if self._state.is_ending:
            return f"the experiment is {self._state.status}"
        if most is not None and self._trials.created + self._rules.requests.total >= most:
            return f"max_trial_number ({most}) trials are made or asked for already"
        return ""

    def add(self, event: happened.TrialAddRequested) -> None:
        """Add a trial with the user's parameters, once max_trial_number allows it."""
        if self.why_not_add():
            self._left_out.append(event.record)
            return
        self._add(event.record)
        self._trials.start_waiting()  # the tuner is not asked: others that are added at once need the room
        self._rules.settle()

    def _add(self, record: str) -> None:
        self._rules.add(None, record)
        if is_starting_point(record):  # so that the tuner does not propose it, too
            self._pending.send(CommandType.ImportData, import_payload(record))

    def kill(self, event: happened.TrialKillRequested) -> None:
        """End a trial, unless it has ended already."""
        trial = self._trials.live.get(event.trial_id)
        if trial is not None:
            self._rules.end_now_or_later(trial, Verdict(Cause.USER_CANCEL, "killed by the user"))

    def complete(self, event: happened.CompleteRequested) -> None:
        """End a running trial as a success, with its last result as the final one."""
        trial = self._trials.live.get(event.trial_id)
        if trial is None or trial.verdict is not None or not trial.is_assigned:
            return
        if trial.final is None and trial.finals:
            return  # it is about to be paused
        if trial.final is None:
            leave_rung(trial)
            key = event.time, trial.trial_id, trial.attempt
            final = happened.Reported(*key, kind="final", sequence=0, value=event.value)
            self._executor.take_final(trial, final)
        self._trials.stop_attempt(trial, Verdict(Cause.ENDED_WELL, event.reason))

    def retry_failed(self, event: happened.RetryFailedRequested) -> None:
        """Run all failed trials again."""
        for trial in self._trials.all.values():
            if trial.status is TrialStatus.FAILED:
                self._rules.run_again(trial, event.from_checkpoint)
        self._rules.streak.restart()
        self._rules.failures.clear()
        self._rules.proceed()

    def retry_cancelled(self, _event: happened.RetryCancelledRequested) -> None:
        """Run the trials again that the end of the experiment cancelled."""
        trials = self._trials.all.values()
        cancelled = [trial for trial in trials if trial.status is TrialStatus.SYS_CANCELED]
        if retried := list(filter(self._rules.may_undo_cancellation, cancelled)):
            for trial in retried:
                self._rules.run_again(trial, from_checkpoint=True)
            self._rules.proceed()

    def stop(self, event: happened.StopRequested) -> None:
        """End the experiment."""
        self._state.error = event.error or self._state.error
        self._rules.stop(ExperimentStatus(event.outcome), event.reason)

    def limits(self, event: happened.LimitsChanged) -> None:
        """Apply new limits."""
        names = [limit.name for limit in fields(Limits) if hasattr(event, limit.name)]
        self._state.limits = replace(self._state.limits, **{name: getattr(event, name) for name in names})
        while self._left_out and not self.why_not_add():
            self._add(self._left_out.pop(0))
        self._rules.proceed()

    def search_space(self, event: happened.SearchSpaceChanged) -> None:
        """Send a new search space to the tuner."""
        self._pending.send(CommandType.UpdateSearchSpace, event.search_space)
        self._rules.ask_again()

    def data(self, event: happened.DataImported) -> None:
        """Send results measured elsewhere to the tuner."""
        self._pending.send(CommandType.ImportData, event.data)
        self._rules.ask_again()

    def time_passed(self, event: happened.Tick) -> None:
        """End what has run longer than it may."""
        limits, deadlines = self._state.limits, self._trials.deadlines
        deadline = deadlines.of_experiment(limits.max_experiment_duration)
        if deadline is not None and event.time >= deadline and not self._state.is_ending:
            limit = f"max_experiment_duration ({limits.max_experiment_duration:g} s)"
            self._rules.stop(ExperimentStatus.DONE, f"{limit} is over")
        for trial in deadlines.overdue(limits.max_trial_duration, event.time):
            reason = f"ran longer than max_trial_duration ({limits.max_trial_duration:g} s)"
            self._trials.stop_attempt(trial, Verdict(Cause.ENDED_BADLY, reason, FailureKind.TIMEOUT))
