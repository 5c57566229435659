"""The experiment's state machine: events in, effects out. No I/O, no clock, no threads.

House rules of this file:

* `handle` is the only door; whoever holds a runner reads its attributes and changes none of them;
* statuses move by the tables in `trial.py` and `experiment_status.py` alone;
* everything that must survive a kill is noted in `changes` at once; the manager takes the changes after each batch of
  events, commits them, and only then performs the effects;
* an event that comes too late (a report of an ended trial, a second kill verdict) is expected: it is looked at and
  dropped where it is handled, never raised as an error.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..protocol import CommandType
from . import events as happened
from .attempts import (
    asked_resume,
    came_to_nothing,
    ended_attempt,
    ends_rung,
    exchange,
    forget_checkpoint,
    leave_rung,
    note_checkpoint,
    revive,
    rewind,
    start_from,
    wishes_of,
)
from .changes import Changes, MetricRow
from .deadlines import Deadlines
from .dispatcher_failures import DispatcherFailures
from .effects import (
    AttemptOrder,
    CopyCheckpoint,
    Effect,
    Finish,
    PauseTrial,
    RestoreDispatcher,
    SendCommand,
    StartTrial,
    StopTrial,
)
from .events import Event
from .experiment_status import EXPERIMENT_MOVES, ExperimentStatus
from .ledger import Assignment, Ledger, Request
from .limits import Limits
from .objectives import BestTrials, Objective
from .payloads import import_payload, metric_payload, trial_end_payload
from .slots import Slots
from .trial import Cause, FailureKind, Trial, TrialStatus, Verdict, new_trial_id
from .tuner_requests import TunerRequests
from .verdicts import FailureStreak, check_final, check_intermediate, is_checkpoint_gone, judge_end
from .vocabulary import Decision

__all__ = ["TrialRunner"]

# More agents than this are made when their trials come: not all of them may be needed.
_AGENTS_AHEAD = 4


class TrialRunner:
    """Runs the trials of one experiment.

    `totals` of the ledger and the `limits` say how many trials may run at once; a slot (0 .. concurrency - 1) is where
    one of them runs.
    """

    def __init__(
        self,
        experiment_id: str,
        limits: Limits,
        ledger: Ledger,
        request: Request | None = None,
        objectives: Sequence[Objective] = (Objective(),),
    ) -> None:
        self.experiment_id = experiment_id
        self.limits = limits
        self.ledger = ledger
        self.request = request or Request()
        self.objectives = tuple(objectives)
        self.status = ExperimentStatus.INITIALIZED
        self.reason = ""
        self.error = ""
        self.trials: dict[str, Trial] = {}
        self.live: dict[str, Trial] = {}
        self.waiting: deque[Trial] = deque()
        self.counts: Counter[TrialStatus] = Counter()
        self.best = BestTrials(self.objectives)
        self.failures: deque[Trial] = deque(maxlen=5)
        self.created = 0
        self.wants_periodical = True
        self._names = tuple(objective.name for objective in self.objectives)
        self._streak = FailureStreak(limits.max_identical_failures)
        self._now = 0.0
        self._ready = False
        self._requests = TunerRequests()
        self._deadlines = Deadlines()
        self._dispatcher_failures = DispatcherFailures()
        self._stall_is_told = False
        self._final_status = ExperimentStatus.DONE
        self.slots = Slots()
        self.silent_agents: set[str] = set()  # they get nothing new to do
        self._changes = Changes()
        self._effects: list[Effect] = []
        self._handlers = self._table_of_handlers()

    def _table_of_handlers(self) -> dict[type, Callable[[Any], None]]:
        """Which method takes which event: every kind has a row but `ExecutorFailed`, which ends the manager."""
        return {
            happened.DispatcherReady: self._on_dispatcher_ready,
            happened.ParametersArrived: self._on_parameters,
            happened.NoMoreParameters: self._on_no_more_parameters,
            happened.KillVerdict: self._on_kill_verdict,
            happened.PauseVerdict: self._on_pause_verdict,
            happened.ResumeAsked: self._on_resume_asked,
            happened.ReviveAsked: self._on_revive_asked,
            happened.DispatcherAnswered: self._on_dispatcher_answered,
            happened.DispatcherFailed: self._on_dispatcher_failed,
            happened.AttemptStarted: self._on_started,
            happened.Reported: self._on_reported,
            happened.BadReport: self._on_bad_report,
            happened.CheckpointSaved: self._on_checkpoint,
            happened.AttemptEnded: self._on_ended,
            happened.StartRefused: self._on_start_refused,
            happened.AgentSilent: self._on_agent_silent,
            happened.AgentLost: self._on_agent_lost,
            happened.ResourcesChanged: self._on_resources_changed,
            happened.TotalsChanged: self._on_totals_changed,
            happened.TrialKillAsked: self._on_kill_asked,
            happened.TrialAddAsked: self._on_add_asked,
            happened.CompleteAsked: self._on_complete_asked,
            happened.StopAsked: self._on_stop_asked,
            happened.LimitsChanged: self._on_limits_changed,
            happened.SearchSpaceChanged: self._on_search_space_changed,
            happened.DataImported: self._on_data_imported,
            happened.Tick: self._on_tick,
        }

    # ------------------------------------------------------------------ the doors

    def handle(self, event: Event) -> list[Effect]:
        """Take one event in; answer what is to be done about it, in order."""
        self._effects = []
        self._now = event.time
        self._handlers[type(event)](event)
        return self._effects

    def take_changes(self) -> Changes:
        """What must be committed before the effects so far are performed."""
        changes, self._changes = self._changes, Changes()
        return changes

    def next_deadline(self) -> float | None:
        """When the next `Tick` is due at the latest; None: never."""
        return self._deadlines.next(self.limits.max_experiment_duration, self.limits.max_trial_duration)

    def snapshot(self) -> dict[str, Any]:
        """The few facts besides the trials that a resumed runner needs, as plain JSON values."""
        return {
            **self._requests.snapshot(),
            "lost_agents": self.slots.snapshot(),
            "again": [trial.sequence_id for trial in self._again()],
            "streak": self._streak.snapshot(),
            "stall_is_told": self._stall_is_told,
        }

    def restore(self, trials: Iterable[Trial], snapshot: dict[str, Any], run_time: float) -> None:
        """Take up an experiment where the store says it was (trials in the order of their sequence ids)."""
        self._requests.restore(snapshot)
        self._stall_is_told = snapshot.get("stall_is_told", False)
        self._deadlines.restore(run_time)
        for trial in trials:
            self._restore_trial(trial)
        place = {sequence_id: index for index, sequence_id in enumerate(snapshot.get("again", ()))}
        self.waiting = deque(
            sorted(
                self.waiting, key=lambda trial: place.get(trial.sequence_id, len(place) + trial.sequence_id)
            )
        )
        self._streak.restore(snapshot.get("streak"))
        failed = [trial for trial in self.trials.values() if trial.status is TrialStatus.FAILED]
        self.failures.extend(sorted(failed, key=lambda trial: trial.end_time or 0.0)[-5:])
        running = {trial.slot: trial for trial in self.live.values() if trial.slot is not None}
        self.slots.restore(running, snapshot.get("lost_agents", {}))
        for trial in sorted(running.values(), key=lambda trial: trial.start_time or 0.0):
            self._deadlines.watch(trial)

    def shift_starts(self, seconds: float) -> None:
        """The clock was set while nobody ran the experiment: by it, what runs began so many seconds later."""
        for trial in self.live.values():
            if trial.start_time is not None:
                trial.start_time += seconds
                self._note(trial)

    def elapsed(self, now: float) -> float:
        """Seconds for which the experiment has run, over all its managers."""
        return self._deadlines.elapsed(now)

    @property
    def requested(self) -> int:
        """How many trials the tuner was asked for and has not answered about."""
        return self._requests.total

    def ask_in_one(self) -> int:
        """Make one request of all that are unanswered, for a dispatcher that is told it anew; answers its size."""
        return self._requests.merge()

    def get_trial(self, trial_id: str) -> Trial | None:
        """The trial with this id."""
        return self.trials.get(trial_id)

    def get_trials(self) -> list[Trial]:
        """All trials, in the order in which they were made."""
        return list(self.trials.values())

    def is_finished(self) -> bool:
        """Is the experiment over?"""
        return self.status.is_final

    def add_trial(self, record: str, time: float) -> list[Effect]:
        """Take in a trial of the user's, by its parameter record without an id; answer what is to be done."""
        return self.handle(happened.TrialAddAsked(time, record))

    def stop_trial(self, trial_id: str, time: float) -> list[Effect]:
        """End a trial, whatever it does; nothing happens to one that has ended."""
        return self.handle(happened.TrialKillAsked(time, trial_id))

    def decide(self, trial_id: str, decision: str, reason: str, time: float) -> list[Effect]:
        """Act on a `Decision` about a trial; raises `ValueError` for anything else."""
        if Decision(decision) is Decision.CONTINUE:
            return []
        asked = happened.PauseVerdict if decision == Decision.PAUSE else happened.KillVerdict
        return self.handle(asked(time, trial_id, reason))

    def has_resources(self, request: Request) -> bool:
        """Could a trial that takes `request` start now?"""
        return self.ledger.fits(request)

    def why_not_add(self) -> str:
        """Why no trial can be added, as a sentence; empty if one can."""
        most = self.limits.max_trial_number
        if self.status is ExperimentStatus.STOPPING or self.status.is_final:
            return f"the experiment is {self.status}"
        if most is not None and self.created + self.requested >= most:
            return f"max_trial_number ({most}) trials are made or asked for already"
        return ""

    def orders(self) -> list[AttemptOrder]:
        """The attempts that an executor was told to run and that have not ended."""
        return [self._order(trial) for trial in self.live.values() if trial.is_assigned]

    def next_agents(self) -> list[str]:
        """The agents that a new experiment will use first; none for one that went on before."""
        if self.trials or self.status.is_final:
            return []
        bound = self.limits.max_trial_number or self.limits.trial_concurrency
        return self.slots.first_agents(min(self.limits.trial_concurrency, bound, _AGENTS_AHEAD))

    def condemned(self) -> list[Trial]:
        """The trials that an executor was told to end and that have not ended."""
        return [trial for trial in self.live.values() if trial.verdict is not None and trial.is_assigned]

    def copies(self) -> list[CopyCheckpoint]:
        """The checkpoints that may still have to be copied before an attempt starts from them."""
        return [
            CopyCheckpoint(trial.copy_of, trial.checkpoint)
            for trial in self.live.values()
            if trial.copy_of is not None and trial.checkpoint is not None
        ]

    @property
    def is_stalled(self) -> bool:
        """Do all trials wait to be resumed, and nothing else can happen?"""
        paused = self.counts[TrialStatus.PAUSED]
        return self._may_start() and self.requested == 0 and 0 < paused == len(self.live)

    def why_waiting(self, trial: Trial) -> str:
        """Why a WAITING trial does not run yet."""
        if trial.is_assigned:
            return f"its agent {trial.agent} is starting"
        if len(self.slots) >= self.limits.trial_concurrency:
            return f"all {self.limits.trial_concurrency} slots (trial_concurrency) are taken"
        return self.ledger.why_not(self.request)

    # ------------------------------------------------------------------ the dispatcher

    def _on_dispatcher_ready(self, event: happened.DispatcherReady) -> None:
        self.wants_periodical = event.wants_periodical
        if self._ready or not self._goes_on:
            return
        self._ready = True
        self._deadlines.begin(event.time)
        if self.status is not ExperimentStatus.RUNNING:
            self._move(ExperimentStatus.RUNNING)
        self._go_on()

    def _on_parameters(self, event: happened.ParametersArrived) -> None:
        self._requests.answered()
        if self.status is ExperimentStatus.STOPPING or self.status.is_final:
            return
        self._requests.has_more = True
        self._add(event.parameter_id, event.record)
        self._go_on()

    def _on_no_more_parameters(self, event: happened.NoMoreParameters) -> None:
        self._requests.exhausted()
        if self._requests.may_ask_again:
            self._ask_for_more()  # it may have answered before it heard of the last results
        self._settle()

    def _on_kill_verdict(self, event: happened.KillVerdict) -> None:
        trial = self.live.get(event.trial_id)
        if trial is not None and trial.final is None:  # a complete result is not thrown away
            self._end_now_or_later(trial, Verdict(Cause.CONDEMNED, event.reason))

    def _on_pause_verdict(self, event: happened.PauseVerdict) -> None:
        trial = self.live.get(event.trial_id)
        if trial is not None and trial.status is not TrialStatus.PAUSED and trial.verdict is None:
            self._pause(trial, event.reason)

    def _on_resume_asked(self, event: happened.ResumeAsked) -> None:
        trial = self.live.get(event.trial_id)
        if trial is None or (trial.verdict is not None and trial.verdict.cause is not Cause.PAUSED):
            return  # it has ended, or is about to
        trial.resume = asked_resume(event)
        self._note(trial)
        if trial.status is TrialStatus.PAUSED:
            self._resume(trial)
            self._go_on()
        elif trial.verdict is None:
            self._pause(trial, "to go on with what the tuner gives it")

    def _on_revive_asked(self, event: happened.ReviveAsked) -> None:
        for trial in self.trials.values():
            if trial.status is TrialStatus.FAILED:
                revive(trial, event.from_checkpoint)
                self.live[trial.trial_id] = trial
                self._begin_next(trial, Cause.RESUMED)
        self._streak.clear()
        self.failures.clear()
        self._go_on()

    def _on_dispatcher_answered(self, event: happened.DispatcherAnswered) -> None:
        """Nothing can happen unless the tuner resumes a trial: it is asked to, once, by a request for no trials."""
        if not self.is_stalled:
            return
        if not self._stall_is_told:
            self._stall_is_told = True
            self._send(CommandType.RequestTrialJobs, "0")
            return
        for trial in list(self.live.values()):
            self._end(trial, Verdict(Cause.CONDEMNED, "paused, and never resumed"), event.time)
        self._go_on()

    def _on_dispatcher_failed(self, event: happened.DispatcherFailed) -> None:
        if self.status.is_final or self.status is ExperimentStatus.STOPPING:
            return
        if why := self._dispatcher_failures.verdict(event):
            self.error = event.traceback
            self._stop(ExperimentStatus.ERROR, why)
        else:
            told = f"{event.message} ({event.where})" if event.where else event.message
            self._effects.append(RestoreDispatcher(told))

    # ------------------------------------------------------------------ the trials

    def _on_started(self, event: happened.AttemptStarted) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is None or trial.status is not TrialStatus.WAITING:
            return
        trial.start_time, trial.pid, trial.copy_of = event.time, event.pid, None
        self._move_trial(trial, Cause.STARTED)
        self._deadlines.watch(trial)

    def _on_reported(self, event: happened.Reported) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is None:
            return
        if event.kind == "final":
            self._take_final(trial, event)
        elif event.sequence >= trial.next_sequence:
            self._take_intermediate(trial, event)

    def _take_intermediate(self, trial: Trial, event: happened.Reported) -> None:
        trial.next_sequence = event.sequence + 1
        self._changes.trials[trial.trial_id] = trial
        self._keep_metric(trial, event, "PERIODICAL")
        if (verdict := check_intermediate(event.value)) is not None:
            reason = f"intermediate result {event.sequence}: {verdict.reason}"
            self._condemn(trial, Verdict(verdict.cause, reason, verdict.kind))
        elif self._is_judged(trial) and event.sequence >= trial.told:
            trial.told = event.sequence + 1
            self._send_metric(trial, "PERIODICAL", event.sequence, event.value)

    def _is_judged(self, trial: Trial) -> bool:
        """Does the dispatcher want to know what the trial reports?"""
        return self.wants_periodical and (trial.verdict is None or trial.verdict.cause is Cause.PAUSED)

    def _take_final(self, trial: Trial, event: happened.Reported) -> None:
        if event.sequence < trial.finals:
            return  # told again after a restart
        trial.finals = event.sequence + 1
        self._changes.trials[trial.trial_id] = trial
        self._keep_metric(trial, event, "FINAL")
        if trial.finals > 1:
            return
        judged = check_final(event.value, self._names)
        if isinstance(judged, Verdict):
            self._condemn(trial, judged)
            return
        if ends_rung(trial, event.value):
            self._reach_rung(trial, event.value)
            return
        trial.final, trial.values = event.value, judged
        if trial.revivals:  # the dispatcher has taken leave of it
            self._send(CommandType.ImportData, import_payload(trial.record, event.value))
        else:
            self._send_metric(trial, "FINAL", 0, event.value)

    def _reach_rung(self, trial: Trial, value: str) -> None:
        """Take a final result as the intermediate one at which the tuner pauses the trial, unless that was reported."""
        last = int(trial.budget or 0) - 1
        if self._is_judged(trial) and last >= trial.told:
            trial.told = last + 1
            self._send_metric(trial, "PERIODICAL", last, value)

    def _on_bad_report(self, event: happened.BadReport) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is not None:
            self._condemn(trial, Verdict(Cause.ENDED_BADLY, event.message, FailureKind.USER_ERROR))

    def _on_ended(self, event: happened.AttemptEnded) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is None:
            return
        trial.exit_code = event.exit_code if event.signal is None else -event.signal
        trial.error = event.error
        if event.exported:
            exports = [(trial.sequence_id, name, path) for name, path in event.exported.items()]
            self._changes.exports.extend(exports)
        if event.lost:
            self._lose_agent(trial.agent)
        verdict = judge_end(trial, event)
        if verdict.cause is Cause.PAUSED:
            self._paused(trial, verdict)
        elif self._is_run_again(trial, verdict):
            self._run_again(trial, verdict)
        else:
            self._end(trial, verdict, event.time)
        self._go_on()

    def _on_checkpoint(self, event: happened.CheckpointSaved) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is not None:
            note_checkpoint(trial, event)
            self._note(trial)

    def _on_start_refused(self, event: happened.StartRefused) -> None:
        trial = self._current(event.trial_id, event.attempt)
        if trial is None or trial.status is not TrialStatus.WAITING:
            return
        self._free_slot(trial)
        self.ledger.set_busy_elsewhere(frozenset(event.devices))
        self._move_trial(trial, Cause.REFUSED)
        self.waiting.appendleft(trial)

    def _on_totals_changed(self, event: happened.TotalsChanged) -> None:
        self.ledger.set_totals(event.totals)
        self._start_waiting()

    def _on_resources_changed(self, event: happened.ResourcesChanged) -> None:
        self.ledger.set_busy_elsewhere(frozenset(event.busy_devices))
        self._start_waiting()

    def _on_agent_silent(self, event: happened.AgentSilent) -> None:
        if not event.is_over:
            self.silent_agents.add(event.agent)
        elif event.agent in self.silent_agents:
            self.silent_agents.remove(event.agent)

    def _on_agent_lost(self, event: happened.AgentLost) -> None:
        if all(trial.agent != event.agent or not trial.is_assigned for trial in self.live.values()):
            self._lose_agent(event.agent)  # else it has just been made anew

    def _lose_agent(self, agent: str | None) -> None:
        if agent is not None:
            self.silent_agents.discard(agent)
            self.slots.lose(agent)

    # ------------------------------------------------------------------ users and time

    def _on_kill_asked(self, event: happened.TrialKillAsked) -> None:
        trial = self.live.get(event.trial_id)
        if trial is None:
            return
        self._end_now_or_later(trial, Verdict(Cause.USER_CANCEL, "killed by the user"))

    def _on_add_asked(self, event: happened.TrialAddAsked) -> None:
        if not self.why_not_add():
            self._add(None, event.record)
            self._go_on()

    def _on_complete_asked(self, event: happened.CompleteAsked) -> None:
        trial = self.live.get(event.trial_id)
        if trial is None or trial.verdict is not None or not trial.is_assigned:
            return
        if trial.final is None and trial.finals:
            return  # it is about to be paused
        if trial.final is None:
            leave_rung(trial)
            told = happened.Reported(event.time, trial.trial_id, trial.attempt, "final", 0, event.value)
            self._take_final(trial, told)
        self._condemn(trial, Verdict(Cause.ENDED_WELL, event.reason))

    def _on_stop_asked(self, event: happened.StopAsked) -> None:
        self.error = event.error or self.error
        self._stop(ExperimentStatus(event.outcome), event.reason)

    def _on_limits_changed(self, event: happened.LimitsChanged) -> None:
        self.limits = replace(
            self.limits,
            trial_concurrency=event.trial_concurrency,
            max_trial_number=event.max_trial_number,
            max_experiment_duration=event.max_experiment_duration,
        )
        self._go_on()

    def _on_search_space_changed(self, event: happened.SearchSpaceChanged) -> None:
        self._send(CommandType.UpdateSearchSpace, event.search_space)
        self._ask_again()

    def _on_data_imported(self, event: happened.DataImported) -> None:
        self._send(CommandType.ImportData, event.data)
        self._ask_again()

    def _ask_again(self) -> None:
        """A tuner that had nothing to propose may have something now that it was told more."""
        self._requests.has_news = True
        self._go_on()

    def _on_tick(self, event: happened.Tick) -> None:
        limits = self.limits
        deadline = self._deadlines.of_experiment(limits.max_experiment_duration)
        if deadline is not None and event.time >= deadline and self.status is not ExperimentStatus.STOPPING:
            limit = f"max_experiment_duration ({limits.max_experiment_duration:g} s)"
            self._stop(ExperimentStatus.DONE, f"{limit} is over")
        for trial in self._deadlines.overdue(limits.max_trial_duration, event.time):
            reason = f"ran longer than max_trial_duration ({limits.max_trial_duration:g} s)"
            self._condemn(trial, Verdict(Cause.ENDED_BADLY, reason, FailureKind.TIMEOUT))

    # ------------------------------------------------------------------ moves

    def _go_on(self) -> None:
        """Start what can start, ask for what is missing, and see whether the experiment is over."""
        self._start_waiting()
        self._ask_for_more()
        self._settle()

    def _start_waiting(self) -> None:
        while self.waiting and len(self.slots) < self.limits.trial_concurrency and self._may_start():
            assignment = self.ledger.take(self.waiting[0].trial_id, self.request)
            if assignment is None:
                return
            self._assign(self.waiting.popleft(), assignment)

    def _may_start(self) -> bool:
        return self._ready and self._goes_on

    @property
    def _goes_on(self) -> bool:
        """Will there be more attempts? Perhaps the dispatcher is not there yet."""
        return self.status is not ExperimentStatus.STOPPING and not self.status.is_final

    def _add(self, parameter_id: int | str | None, record: str) -> None:
        trial_id = new_trial_id(self.experiment_id, self.created, self.trials)
        trial = Trial(trial_id, self.created, parameter_id, record, self._now)
        trial.budget, donor = wishes_of(record)
        if donor is not None:
            start_from(trial, self.trials.get(donor))
            self._copy_checkpoint(trial)
        self.created += 1
        self.trials[trial_id] = self.live[trial_id] = trial
        self.counts[trial.status] += 1
        self.waiting.append(trial)
        self._note(trial)

    def _assign(self, trial: Trial, assignment: Assignment) -> None:
        trial.attempt += 1
        trial.gpus = assignment.gpus
        self.slots.take(trial, avoiding=self.silent_agents)
        self._note(trial)
        self._effects.append(StartTrial(self._order(trial)))

    def _ask_for_more(self) -> None:
        if not self._may_start():
            return
        # A tuner that had nothing more is asked again after each end: some propose once results are in.
        active = len(self.live) - self.counts[TrialStatus.PAUSED]
        missing = self.limits.trial_concurrency - active - self.requested
        if self.limits.max_trial_number is not None:
            missing = min(missing, self.limits.max_trial_number - self.created - self.requested)
        if missing > 0:
            self._requests.ask(missing)
            self._send(CommandType.RequestTrialJobs, str(missing))

    def _settle(self) -> None:
        """Move the experiment to what its trials and the tuner make of it."""
        if self.status is ExperimentStatus.STOPPING:
            if not self.slots:
                self._finish(self._final_status)
            return
        if not self._may_start():
            return
        full = self.limits.max_trial_number is not None and self.created >= self.limits.max_trial_number
        dry = not self._requests.has_more and self.requested == 0
        if (full or dry) and not self.live:
            self.reason = "" if full else "the tuner has nothing more to propose"
            self._finish(ExperimentStatus.DONE)
        elif full:
            self._move(ExperimentStatus.NO_MORE_TRIAL)
        elif not self._requests.has_more:
            self._move(ExperimentStatus.TUNER_NO_MORE_TRIAL)
        else:
            self._move(ExperimentStatus.RUNNING)

    def _condemn(self, trial: Trial, verdict: Verdict) -> None:
        """Fix how a trial will end and have its process ended; the first verdict stands, unless it is a pause."""
        if trial.verdict is not None and trial.verdict.cause is not Cause.PAUSED:
            return
        trial.verdict = verdict
        self._deadlines.forget(trial)
        self._note(trial)
        if trial.is_assigned:
            self._effects.append(StopTrial(trial.trial_id, trial.attempt))

    def _end_now_or_later(self, trial: Trial, verdict: Verdict) -> None:
        """End a trial at once if no executor has to be told first."""
        self._condemn(trial, verdict)
        if not trial.is_assigned:
            if trial.status is TrialStatus.WAITING:
                self.waiting.remove(trial)
            self._end(trial, trial.verdict or verdict, self._now)
            self._go_on()

    # ------------------------------------------------------------------ pauses, resumes, retries

    def _pause(self, trial: Trial, reason: str) -> None:
        """Have a trial paused: the one that waits at once, the one that runs when it has saved a checkpoint."""
        if trial.final is not None:
            return  # it has done its work, and is about to end
        trial.verdict = Verdict(Cause.PAUSED, reason)
        self._deadlines.forget(trial)
        self._note(trial)
        if trial.is_assigned:
            self._effects.append(PauseTrial(trial.trial_id, trial.attempt))
        else:
            self.waiting.remove(trial)
            self._paused(trial, trial.verdict)
            self._go_on()

    def _paused(self, trial: Trial, verdict: Verdict) -> None:
        """The trial holds nothing any more; if its resume is there already, it waits for a slot."""
        if trial.is_assigned:
            self._changes.attempts.append(ended_attempt(trial, "paused", verdict, self._now))
        self._free_slot(trial)
        self._deadlines.forget(trial)
        trial.verdict, trial.reason = None, verdict.reason
        self._move_trial(trial, Cause.PAUSED)
        if trial.resume is not None and self._goes_on:
            self._resume(trial)

    def _resume(self, trial: Trial) -> None:
        resume, trial.resume = json.loads(trial.resume or "{}"), None
        exchange(trial, resume, self.trials.get(resume.get("checkpoint_of", "")))
        self._copy_checkpoint(trial)
        self._begin_next(trial, Cause.RESUMED)

    def _copy_checkpoint(self, trial: Trial) -> None:
        if trial.copy_of is not None and trial.checkpoint is not None:
            self._effects.append(CopyCheckpoint(trial.copy_of, trial.checkpoint))

    def _is_run_again(self, trial: Trial, verdict: Verdict) -> bool:
        """Does the failed attempt get a successor? Not if its result is told already, or everything ends."""
        return (
            verdict.cause is Cause.ENDED_BADLY
            and verdict.kind is not None
            and trial.final is None
            and self._goes_on
            and self.limits.retries.allow(verdict.kind, trial.failed)
        )

    def _run_again(self, trial: Trial, verdict: Verdict) -> None:
        self._count_failure(trial, verdict)
        self._changes.attempts.append(ended_attempt(trial, "retried", verdict, self._now))
        self._free_slot(trial)
        self._deadlines.forget(trial)
        trial.verdict = None
        if is_checkpoint_gone(trial.error) or came_to_nothing(trial, verdict):
            forget_checkpoint(trial)
        self._begin_next(trial, Cause.RETRIED)

    def _begin_next(self, trial: Trial, cause: Cause) -> None:
        """The trial waits for its next attempt, before all that were never started."""
        if (superseded := rewind(trial)) is not None:
            self._changes.superseded.append(superseded)
        trial.reason = ""
        self._stall_is_told = False
        self._move_trial(trial, cause)
        self.waiting.insert(len(self._again()), trial)

    def _again(self) -> list[Trial]:
        """The waiting trials that ran before; they stand in front."""
        return list(itertools.takewhile(lambda trial: trial.attempt > 0, self.waiting))

    def _count_failure(self, trial: Trial, verdict: Verdict) -> None:
        if verdict.cause is Cause.ENDED_BADLY and verdict.kind is not None:
            trial.failed = {**trial.failed, verdict.kind.value: trial.failed.get(verdict.kind, 0) + 1}

    def _end(self, trial: Trial, verdict: Verdict, time: float) -> None:
        self._count_failure(trial, verdict)
        trial.end_time, trial.reason, trial.kind = time, verdict.reason, verdict.kind
        self._free_slot(trial)
        self._move_trial(trial, verdict.cause)
        del self.live[trial.trial_id]
        self._deadlines.forget(trial)
        trial.verdict = trial.resume = trial.copy_of = None
        self._send(CommandType.TrialEnd, trial_end_payload(trial.trial_id, trial.status, trial.record))
        self._requests.has_news = True
        self._judge_experiment(trial)
        trial.story = ()  # only live trials can be asked to make a wrong move

    def _judge_experiment(self, trial: Trial) -> None:
        if trial.status is TrialStatus.SUCCEEDED:
            self.best.add(trial)
        if trial.status is not TrialStatus.FAILED:
            if trial.status in (TrialStatus.SUCCEEDED, TrialStatus.EARLY_STOPPED):
                self._streak.clear()  # what was cancelled does not show that anything works
            return
        self.failures.append(trial)
        if self.limits.fail_fast:
            self.error = trial.error or ""
            self._stop(
                ExperimentStatus.ERROR, f"trial {trial.sequence_id} failed (fail_fast): {trial.reason}"
            )
        elif self._streak.add(trial.reason):
            self.error = trial.error or ""
            self._stop(
                ExperimentStatus.ERROR, f"the first {self._streak.count} trials failed alike: {trial.reason}"
            )

    def _stop(self, final: ExperimentStatus, reason: str) -> None:
        """End the experiment: nothing new starts, what runs is ended, and then its status is `final`."""
        if self.status is ExperimentStatus.STOPPING or self.status.is_final:
            return
        self.reason, self._final_status = reason, final
        self._move(ExperimentStatus.STOPPING)
        verdict = Verdict(Cause.SYSTEM_CANCEL, reason)
        for trial in list(self.live.values()):
            self._condemn(trial, verdict)
        self.waiting.clear()
        for trial in [trial for trial in self.live.values() if not trial.is_assigned]:
            self._end(trial, trial.verdict or verdict, self._now)
        self._settle()

    def _finish(self, status: ExperimentStatus) -> None:
        self._move(status)
        self._effects.append(Finish())

    # ------------------------------------------------------------------ small things

    def _current(self, trial_id: str, attempt: int) -> Trial | None:
        """The live trial an event speaks of, if it speaks of its current attempt."""
        trial = self.live.get(trial_id)
        return trial if trial is not None and trial.attempt == attempt and trial.is_assigned else None

    def _move(self, status: ExperimentStatus) -> None:
        if status is self.status:
            return
        if status not in EXPERIMENT_MOVES[self.status]:
            raise RuntimeError(f"experiment {self.experiment_id} is {self.status} and cannot become {status}")
        self.status = status

    def _move_trial(self, trial: Trial, cause: Cause) -> None:
        self.counts[trial.status] -= 1
        trial.move(cause)
        self.counts[trial.status] += 1
        self._note(trial)

    def _note(self, trial: Trial) -> None:
        self._changes.trials[trial.trial_id] = trial

    def _free_slot(self, trial: Trial) -> None:
        if trial.is_assigned:
            self.slots.free(trial)
            self.ledger.release(trial.trial_id)

    def _order(self, trial: Trial) -> AttemptOrder:
        if trial.slot is None or trial.agent is None:
            raise RuntimeError(f"trial {trial.trial_id} is not assigned")
        return AttemptOrder(
            trial.trial_id,
            trial.attempt,
            trial.sequence_id,
            trial.record,
            trial.slot,
            trial.agent,
            trial.gpus,
            trial.first_sequence,
            trial.start_time,
            trial.checkpoint,
            trial.budget,
            trial.mark,
        )

    def _keep_metric(self, trial: Trial, event: happened.Reported, kind: str) -> None:
        self._changes.metrics.append(
            MetricRow(trial, event.attempt, kind, event.sequence, event.value, event.time)
        )

    def _send_metric(self, trial: Trial, kind: str, sequence: int, value: str) -> None:
        payload = metric_payload(trial.parameter_id, trial.trial_id, kind, sequence, value)
        self._send(CommandType.ReportMetricData, payload)

    def _send(self, command: CommandType, payload: str) -> None:
        self._effects.append(SendCommand(command, payload))

    def _restore_trial(self, trial: Trial) -> None:
        self.trials[trial.trial_id] = trial
        self.created = max(self.created, trial.sequence_id + 1)
        self.counts[trial.status] += 1
        if trial.status is TrialStatus.SUCCEEDED:
            self.best.add(trial)
        if trial.status.is_final:
            return
        self.live[trial.trial_id] = trial
        if trial.slot is None:
            if trial.status is TrialStatus.WAITING:
                self.waiting.append(trial)
            return
        self.ledger.claim(trial.trial_id, self.request, Assignment(trial.gpus))
