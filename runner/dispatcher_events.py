"""Handlers of the dispatcher's events: parameters, verdicts on trials, its failures."""

from __future__ import annotations

from ..protocol import CommandType
from . import events as happened
from .attempts import resume_text
from .effects import RestoreDispatcher
from .experiment_rules import ExperimentRules
from .experiment_state import ExperimentStatus
from .trial import Cause, TrialStatus, Verdict


class DispatcherEvents:
    """Handles the events that come from the dispatcher."""

    def __init__(self, rules: ExperimentRules) -> None:
        self._rules = rules
        self._trials = rules.trials
        self._state = rules.state
        self._requests = rules.requests
        self._pending = rules.pending
        self._failures = _DispatcherFailures()

    def ready(self, event: happened.DispatcherReady) -> None:
        """Handle a dispatcher that is ready; with the first one the experiment begins."""
        self._state.wants_periodical = event.wants_periodical
        self._state.any_results = event.any_results
        self._state.tuner_learns = event.learns
        if self._state.is_ready or self._state.is_ending:
            return
        self._state.is_ready = True
        self._trials.deadlines.begin(event.time)
        self._state.move(ExperimentStatus.RUNNING)
        self._rules.proceed()

    def parameters(self, event: happened.ParametersArrived) -> None:
        """Handle a proposal of the tuner."""
        self._requests.fulfil_one()
        if self._state.is_ending:
            return
        self._requests.has_more = True
        self._rules.add(event.parameter_id, event.record)
        self._rules.proceed()

    def no_more(self, event: happened.NoMoreParameters) -> None:
        """Handle a tuner that has nothing to propose."""
        self._requests.note_exhausted(event.reason)
        self._rules.continue_families()  # in the slots that were left for what it would propose
        self._trials.start_waiting()
        if self._requests.may_ask_again:
            self._rules.ask_for_more()  # it may have replied before it received the last results
        self._rules.settle()

    def kill(self, event: happened.KillVerdict) -> None:
        """Handle a verdict that ends a trial; a trial that has reported its final result keeps it."""
        trial = self._trials.live.get(event.trial_id)
        if trial is not None and trial.final is None:
            self._rules.end_now_or_later(trial, Verdict(Cause.EARLY_STOP, event.reason))

    def pause(self, event: happened.PauseVerdict) -> None:
        """Handle a pause."""
        trial = self._trials.live.get(event.trial_id)
        if trial is not None and trial.status is not TrialStatus.PAUSED and trial.verdict is None:
            self._rules.pause(trial, event.reason)

    def resume(self, event: happened.ResumeRequested) -> None:
        """Handle a resume; a trial that still runs is paused first."""
        trial = self._trials.live.get(event.trial_id)
        if trial is None or (trial.verdict is not None and trial.verdict.cause is not Cause.PAUSED):
            return  # it has ended, or is about to
        trial.resume = resume_text(event)
        self._pending.note(trial)
        if trial.status is TrialStatus.PAUSED:
            self._trials.resume(trial)
            self._rules.proceed()
        elif trial.verdict is None:
            self._rules.pause(trial, "to continue with what the tuner gives it")

    def idle(self, event: happened.DispatcherAnswered) -> None:
        """Handle a dispatcher that has nothing left to do while all trials are paused.

        A request for 0 trials asks the tuner, once, to resume one; then the paused trials end.
        """
        if not self._rules.is_stalled:
            return
        if not self._trials.stall_was_reported:
            self._trials.stall_was_reported = True
            self._pending.send(CommandType.RequestTrialJobs, "0")
            return
        for trial in list(self._trials.live.values()):
            self._rules.end(trial, Verdict(Cause.EARLY_STOP, "paused, and never resumed"))
        self._rules.proceed()

    def restore_needed(self, event: happened.RestoreNeeded) -> None:
        """Handle a dispatcher that cannot continue."""
        self._pending.effects.append(RestoreDispatcher(event.reason, event.from_results))

    def record_begun(self, event: happened.RecordBegun) -> None:
        """Merge all open requests for trials into one."""
        self._requests.merge()

    def failed(self, event: happened.DispatcherFailed) -> None:
        """Handle a failure of the dispatcher: restore it, or end the experiment."""
        if self._state.is_ending:
            return
        if why := self._failures.verdict(event):
            self._state.error = event.traceback
            self._rules.stop(ExperimentStatus.ERROR, why)
        else:
            self._pending.effects.append(RestoreDispatcher(event.reason))


# After this many deaths in a row, without a new command handled in between, it is no longer restored.
_MOST_DEATHS = 3


class _DispatcherFailures:
    """Judges the failures of one experiment's dispatcher, in the order in which they come.

    If a plug-in raises, the same command is tried once more. If the process ends by itself, is killed or is silent, the
    reason may be temporary (no memory, a `kill` by hand), so it is restored twice.
    """

    def __init__(self) -> None:
        self._raised_at: int | None = None
        self._died_at = -1  # the highest number of a command at which it did
        self._deaths = 0

    def verdict(self, failure: happened.DispatcherFailed) -> str:
        """Return why the dispatcher is no longer restored, as a sentence; an empty text if it is.

        >>> failures = _DispatcherFailures()
        >>> raised = happened.DispatcherFailed(0.0, message="the tuner raised", where="t.py:3", command=7)
        >>> failures.verdict(raised), failures.verdict(raised)
        ('', 'the tuner raised (t.py:3)')
        """
        command = -1 if failure.command is None else failure.command
        if not failure.died:
            is_repeated, self._raised_at = self._raised_at == command, command
            return failure.reason if is_repeated else ""
        self._deaths = 1 if command > self._died_at else self._deaths + 1
        self._died_at = max(command, self._died_at)
        if self._deaths < _MOST_DEATHS:
            return ""
        return (
            f"{failure.reason}, {self._deaths} times in a row at command {self._died_at}: "
            "see logs/dispatcher.log and logs/dispatcher.out; a resume tries again"
        )
