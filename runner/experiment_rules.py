"""The rules of an experiment: it asks the tuner for trials, starts them, and ends when nothing is left to do."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Sequence

from ..protocol import (
    CommandType,
    Objective,
    import_payload,
    is_starting_point,
    metric_payload,
    trial_end_payload,
)
from .attempts import retry_ended
from .effects import Finish, Pending
from .experiment_state import ExperimentState, ExperimentStatus
from .family_rules import Families, Family, Repeats
from .trial import Cause, Trial, TrialStatus, Verdict
from .trial_moves import Trials
from .verdicts import FailureStreak

# While trials take at most `_SHORT_TRIAL_S` seconds, a tuner that does not learn is asked for `_PROPOSALS_AHEAD` more
# than can run: then the end of a trial and the start of the next one are one turn.
_PROPOSALS_AHEAD = 16
_SHORT_TRIAL_S = 0.1
_NOTHING_MORE = "the tuner has nothing more to propose"


class ExperimentRules:
    """The moves of one experiment, which follow from its trials, its tuner and its limits.

    Trials that were made and trials that the tuner still owes are never more than `max_trial_number`. While the tuner
    has more and trials may start, each slot has a trial that runs, one that waits for it, or a request to the tuner,
    unless that limit is reached.
    """

    def __init__(
        self,
        state: ExperimentState,
        trials: Trials,
        objectives: Sequence[Objective],
        pending: Pending,
        repeats: Repeats,
    ) -> None:
        self.state = state
        self.trials = trials
        self.pending = pending
        self.families = Families(repeats, objectives)  # without repeats it has none
        self.requests = TunerRequests()
        # Of trials that succeeded, or of the outcomes of families, never of both.
        self.best = BestTrials(objectives)
        self.failures: deque[Trial] = deque(maxlen=5)  # the last ones that failed
        self.streak = FailureStreak(state.limits.max_identical_failures)
        self._final_status = ExperimentStatus.DONE  # what STOPPING becomes when the last slot is free

    def restore(self) -> None:
        """Rank the restored trials."""
        for trial in self.trials.all.values():
            self.families.add(trial)
        self._rank()
        failed = [trial for trial in self.trials.all.values() if trial.status is TrialStatus.FAILED]
        self.failures.extend(sorted(failed, key=lambda trial: trial.end_time or 0.0)[-5:])

    def _rank(self) -> None:
        self.best.clear()
        trials = [trial for trial in self.trials.all.values() if trial.status is TrialStatus.SUCCEEDED]
        for outcome in (family.outcome for family in self.families) if self.families.are_on else trials:
            if outcome is not None:
                self.best.add(outcome)

    @property
    def is_stalled(self) -> bool:
        """Whether all trials wait for a resume, and nothing else can happen."""
        paused = self.trials.paused_count
        return 0 < paused == len(self.trials.live) and self.state.may_start and self.requests.total == 0

    def add(self, parameter_id: int | str | None, record: str) -> None:
        """Add a trial; where configurations are repeated, it is the first of its family."""
        record = self.families.first_record(record, self.trials.created)
        self.families.add(self.trials.add(parameter_id, record))

    def proceed(self) -> None:
        """Start what can start, request more trials, and check whether the experiment is over."""
        self.continue_families()
        self.trials.start_waiting()
        self.ask_for_more()
        self.settle()

    def ask_again(self) -> None:
        """Proceed after news for the tuner: it may have something to propose now."""
        self.requests.has_news = True
        self.proceed()

    def ask_for_more(self) -> None:
        """Ask the tuner for as many trials as could run now, or for some more if it does not learn."""
        if not self.state.may_start:
            return
        # A tuner that had nothing to propose is asked again after each end: some need results first.
        fewest = self.families.fewest
        missing = -(-(self._free_slots() - self.requests.total * fewest) // fewest)
        left = self._trials_left()
        if self._may_ask_ahead and missing + _PROPOSALS_AHEAD // 2 >= 0:
            # The last ones are left to those who add trials by hand.
            missing = max(missing, min(missing + _PROPOSALS_AHEAD, left - _PROPOSALS_AHEAD))
        missing = min(missing, left)
        if missing > 0:
            self.requests.ask(missing)
            self.pending.send(CommandType.RequestTrialJobs, str(missing))

    @property
    def _may_ask_ahead(self) -> bool:
        """Whether proposals may wait for a slot: asked for later, they would be the same."""
        return (
            self.trials.last_duration <= _SHORT_TRIAL_S
            and not self.state.tuner_learns
            and self.requests.has_more
            and not self.families.are_on
        )

    def _free_slots(self) -> int:
        """Return how many slots have no trial yet."""
        trials, limits = self.trials, self.state.limits
        return limits.trial_concurrency - len(trials.live) + trials.paused_count

    def _trials_left(self) -> int:
        """Return how many more trials may be made or asked for."""
        most = self.state.limits.max_trial_number
        return sys.maxsize if most is None else most - self.trials.created - self.requests.total

    # ------------------------------------------------------------------ families of repeats

    def continue_families(self) -> None:
        """End the families that need no further repeats; add repeats of the others where slots are free."""
        if not self.families.are_on:
            return
        for family in self.families.take_ended(self.best.front):
            self._end_family(family)
        while self.state.may_start and self._free_slots() > 0 and self._trials_left() > 0:
            repeat = self.families.take_next(self.best.front)
            if repeat is None:
                return
            self.families.add(self.trials.add(*repeat))

    def _end_family(self, family: Family) -> None:
        """Send the mean of a family to the tuner, as the result of one trial, and then its end."""
        first, report = family.first, self.families.report(family)
        self.pending.note(first)
        self.requests.has_news = True
        is_starting = first.parameter_id is None and is_starting_point(first.record)
        if report is not None:
            value, results = report
            if family.is_late or is_starting:
                self.pending.send(CommandType.ImportData, import_payload(first.record, value))
            else:
                payload = metric_payload(
                    first.parameter_id, first.trial_id, "FINAL", 0, value, repeats=results
                )
                self.pending.send(CommandType.ReportMetricData, payload)
        if not family.is_late:
            kind = first.kind if family.status is TrialStatus.FAILED else None
            payload = trial_end_payload(first.trial_id, family.status, first.record, kind=kind)
            self.pending.send(CommandType.TrialEnd, payload)
        if family.is_late:
            self._rank()  # its earlier mean counts no more
        elif (outcome := family.outcome) is not None:
            self.best.add(outcome)

    # ------------------------------------------------------------------ the end, of trials and of the experiment

    def settle(self) -> None:
        """Move the experiment to the status that follows from its trials and the tuner."""
        state, most = self.state, self.state.limits.max_trial_number
        if state.status is ExperimentStatus.STOPPING:
            if not self.trials.slots:
                self._finish(self._final_status)
            return
        if not state.may_start:
            return
        limit_reached = most is not None and self.trials.created >= most
        tuner_is_exhausted = not self.requests.has_more and self.requests.total == 0
        if (limit_reached or tuner_is_exhausted) and not self.trials.live:
            state.reason = "" if limit_reached else self.requests.why_no_more or _NOTHING_MORE
            self._finish(ExperimentStatus.DONE)
        elif limit_reached:
            state.move(ExperimentStatus.NO_MORE_TRIAL)
        elif not self.requests.has_more:
            state.move(ExperimentStatus.TUNER_NO_MORE_TRIAL)
        else:
            state.move(ExperimentStatus.RUNNING)

    def end_now_or_later(self, trial: Trial, verdict: Verdict) -> None:
        """End a trial, at once if it does not run, else when its process has ended."""
        self.trials.stop_attempt(trial, verdict)
        if not trial.is_assigned:
            if trial.status is TrialStatus.WAITING:
                self.trials.waiting.remove(trial)
            self.end(trial, trial.verdict or verdict)
            self.proceed()

    def pause(self, trial: Trial, reason: str) -> None:
        """Pause a trial; if it waited, others may start now."""
        if self.trials.pause(trial, reason):
            self.proceed()

    def end(self, trial: Trial, verdict: Verdict) -> None:
        """End a trial for good; its result counts, and its failure may end the experiment."""
        self.trials.end(trial, verdict)
        self.requests.has_news = True
        if trial.status is TrialStatus.SUCCEEDED and not self.families.are_on:
            self.best.add(trial)
        if trial.status is TrialStatus.FAILED:
            self._judge_failure(trial)
        elif trial.status in (TrialStatus.SUCCEEDED, TrialStatus.EARLY_STOPPED):
            self.streak.clear()  # a cancelled trial does not show that anything works
        elif trial.status is TrialStatus.SYS_CANCELED and self.may_undo_cancellation(trial):
            # The end that cancelled it was interrupted by a kill, and the experiment resumed since.
            self.run_again(trial, from_checkpoint=True)

    def may_undo_cancellation(self, trial: Trial) -> bool:
        """Return whether a trial that the end of the experiment cancelled runs again now that the experiment continues.

        Trials with a budget stay cancelled, because their tuner has planned without them; so do repeats, which their
        family replaces.
        """
        return not self.state.is_ending and trial.budget is None and self.families.of(trial) is None

    def run_again(self, trial: Trial, from_checkpoint: bool) -> None:
        """Let a trial that has ended wait for another attempt."""
        retry_ended(trial, from_checkpoint)
        self.trials.reopen(trial)
        if (first := self.families.reopen(trial)) is not None:
            self.pending.note(first)

    def may_run_again(self, trial: Trial, verdict: Verdict) -> bool:
        """Return whether a failed attempt is retried: never after a final result, nor while the experiment ends."""
        return (
            verdict.cause is Cause.ENDED_BADLY
            and verdict.kind is not None
            and trial.final is None
            and not self.state.is_ending
            and self.state.limits.retries.allow(verdict.kind, trial.failed)
        )

    def stop(self, final: ExperimentStatus, reason: str) -> None:
        """Stop all trials and start no more; when the last one has ended, the status becomes `final`."""
        if self.state.is_ending:
            return
        self.state.reason, self._final_status = reason, final
        self.state.move(ExperimentStatus.STOPPING)
        verdict = Verdict(Cause.SYSTEM_CANCEL, reason)
        live = list(self.trials.live.values())
        for trial in live:
            self.trials.stop_attempt(trial, verdict)
        self.trials.waiting.clear()
        for trial in live:
            if not trial.is_assigned:
                self.end(trial, trial.verdict or verdict)
        self.settle()

    def _judge_failure(self, trial: Trial) -> None:
        self.failures.append(trial)
        if self.state.limits.fail_fast:
            self._fail(trial, f"trial {trial.sequence_id} failed (fail_fast): {trial.reason}")
        elif self.streak.add(trial.reason):
            self._fail(trial, f"the first {self.streak.count} trials failed alike: {trial.reason}")

    def _fail(self, trial: Trial, reason: str) -> None:
        self.state.error = trial.error or ""
        self.stop(ExperimentStatus.ERROR, reason)

    def _finish(self, status: ExperimentStatus) -> None:
        self.state.move(status)
        self.trials.deadlines.end(self.pending.now)
        self.pending.effects.append(Finish())


class TunerRequests:
    """The open requests for trials, in the order in which they were sent.

    >>> requests = TunerRequests()
    >>> requests.ask(2); requests.ask(1); requests.total
    3
    >>> requests.fulfil_one(); requests.note_exhausted(); requests.total, requests.has_more
    (1, False)
    """

    def __init__(self) -> None:
        self.has_more = True  # False after the tuner had nothing to propose
        self.why_no_more = ""  # the reason, if one was given
        self.has_news = False  # whether it has received anything since the last request
        self.asked: deque[int] = deque()  # how many trials each request still waits for

    @property
    def total(self) -> int:
        """How many trials are requested and neither proposed nor declined."""
        return sum(self.asked)

    def ask(self, count: int) -> None:
        """Note a request."""
        self.asked.append(count)
        self.has_news = False

    def fulfil_one(self) -> None:
        """Note a proposal, whether or not it is used."""
        if self.asked:
            self.asked[0] -= 1
            if self.asked[0] == 0:
                self.asked.popleft()

    def note_exhausted(self, reason: str = "") -> None:
        """Note that the tuner has nothing more: the first request is closed, later ones stay open."""
        self.why_no_more = reason
        if self.asked:
            self.asked.popleft()
        self.has_more = False

    @property
    def may_ask_again(self) -> bool:
        """Whether no request is open, and the tuner has received something since the last one."""
        return not self.asked and self.has_news

    def merge(self) -> None:
        """Merge all open requests into one."""
        self.asked = deque([self.total] if self.asked else [])


class BestTrials:
    """The best of the trials added so far that keep all limits."""

    def __init__(self, objectives: Sequence[Objective]) -> None:
        numbered = list(enumerate(objectives))
        self._goals = tuple(
            (place, objective.sign) for place, objective in numbered if objective.direction is not None
        )
        self._limits = tuple((place, objective) for place, objective in numbered if objective.is_limited)
        self.clear()

    def clear(self) -> None:
        """Forget all trials."""
        self._least_violation = math.inf
        # One trial for one objective, the earlier one of equals; for several all that no other dominates.
        self.front: list[Trial] = []
        self._losses: list[tuple[float, ...]] = []  # of the front
        self.closest: Trial | None = None  # while the front is empty, the one that exceeds the limits least

    def add(self, trial: Trial) -> None:
        """Add a finished trial; one without values does not count."""
        if trial.values is None or not self._is_feasible(trial, trial.values):
            return
        losses = tuple([sign * trial.values[place] for place, sign in self._goals])
        for others in self._losses:
            if _beats(others, losses):
                return
        kept = [place for place, others in enumerate(self._losses) if not _beats(losses, others)]
        self.front = [*(self.front[place] for place in kept), trial]
        self._losses = [*(self._losses[place] for place in kept), losses]

    def points(self) -> dict[int, tuple[float, ...]]:
        """Return the losses of the trials on the front, by their sequence numbers."""
        return {trial.sequence_id: losses for trial, losses in zip(self.front, self._losses, strict=True)}

    def _is_feasible(self, trial: Trial, values: Sequence[float]) -> bool:
        violation = sum([objective.violation(values[place]) for place, objective in self._limits])
        if violation > 0:
            if not self.front and violation < self._least_violation:
                self._least_violation, self.closest = violation, trial
            return False
        self.closest = None
        return True


def _beats(earlier: Sequence[float], later: Sequence[float]) -> bool:
    """Return whether the losses of one trial keep another one off the front: for several objectives, equals stay."""
    if len(earlier) == 1:
        return earlier[0] <= later[0]
    return earlier != later and all(mine <= theirs for mine, theirs in zip(earlier, later, strict=True))
