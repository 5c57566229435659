"""The experiment's state machine: events in, effects out. No I/O, no clock, no threads.

House rules of the runner:

* `handle` is the only way in; other rooms read the runner's attributes and change none of them;
* its parts are layers: `Trials` (moves of trials), `ExperimentRules` (moves of the experiment), then the handlers of
  events by their origin: `ExecutorEvents`, `DispatcherEvents`, `UserRequests`;
* statuses change only by the tables in `trial.py` and `experiment_state.py`;
* what must survive a kill is recorded in the changes at once; the manager takes the changes after each batch of
  events, commits them, and only then performs the effects;
* an event may come too late (a report of an ended trial, a second kill verdict): its handler drops it without an error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from ..protocol import Json, Objective
from . import events as happened
from .dispatcher_events import DispatcherEvents
from .effects import AttemptOrder, Changes, CopyCheckpoint, Effect, MetricRow, Pending
from .events import Event
from .executor_events import ExecutorEvents
from .experiment_rules import ExperimentRules
from .experiment_state import ExperimentState, ExperimentStatus, Limits
from .family_rules import Repeats
from .ledger import Ledger, Request
from .trial import Trial
from .trial_moves import Trials
from .user_requests import UserRequests
from .verdicts import TUNE_SOMETHING, TUNES_NOTHING
from .waits import Wait, waits_of

# How many agents start before their trials, at most: not all of them may be needed.
_AGENTS_AHEAD = 4


class RunnerSnapshot(TypedDict):
    """What a resumed runner needs besides the trials, as plain JSON values."""

    asked: list[int]  # how many trials each request to the tuner still waits for
    tuner_has_more: bool
    lost_agents: dict[str, int]  # how many each slot has lost
    again: list[int]  # the trials that wait and ran before
    streak: list[Any]
    stall_is_told: bool
    any_results: list[str]
    has_asked: bool | None


class TrialRunner:
    """Runs the trials of one experiment."""

    def __init__(
        self,
        experiment_id: str,
        limits: Limits,
        ledger: Ledger,
        request: Request | None = None,
        objectives: Sequence[Objective] = (Objective(),),
        *,
        repeats: Repeats | None = None,
    ) -> None:
        self.experiment_id = experiment_id
        self.objectives = tuple(objectives)
        self._pending = Pending()
        self._state = ExperimentState(experiment_id, limits)
        self._trials = Trials(self._state, ledger, request or Request(), self._pending)
        self._rules = ExperimentRules(
            self._state, self._trials, self.objectives, self._pending, repeats or Repeats()
        )
        self._executor = ExecutorEvents(self._rules, self.objectives)
        self._dispatcher = DispatcherEvents(self._rules)
        self._user = UserRequests(self._rules, self._executor)
        # `ExecutorFailed` has no handler: it ends the manager.
        self.handlers: dict[type[Event], Callable[[Any], None]] = {
            happened.DispatcherReady: self._dispatcher.ready,
            happened.ParametersArrived: self._dispatcher.parameters,
            happened.NoMoreParameters: self._dispatcher.no_more,
            happened.KillVerdict: self._dispatcher.kill,
            happened.PauseVerdict: self._dispatcher.pause,
            happened.ResumeRequested: self._dispatcher.resume,
            happened.DispatcherAnswered: self._dispatcher.idle,
            happened.DispatcherFailed: self._dispatcher.failed,
            happened.RestoreNeeded: self._dispatcher.restore_needed,
            happened.RecordBegun: self._dispatcher.record_begun,
            happened.AttemptStarted: self._executor.started,
            happened.Reported: self._executor.reported,
            happened.BadReport: self._executor.bad,
            happened.CheckpointSaved: self._executor.saved,
            happened.AttemptEnded: self._executor.ended,
            happened.StartRefused: self._executor.refused,
            happened.AgentSilent: self._executor.agent_silent,
            happened.AgentLost: self._executor.agent_lost,
            happened.ResourcesChanged: self._executor.resources_changed,
            happened.TotalsChanged: self._executor.totals_changed,
            happened.TrialKillRequested: self._user.kill,
            happened.TrialAddRequested: self._user.add,
            happened.CompleteRequested: self._user.complete,
            happened.RetryFailedRequested: self._user.retry_failed,
            happened.RetryCancelledRequested: self._user.retry_cancelled,
            happened.StopRequested: self._user.stop,
            happened.LimitsChanged: self._user.limits,
            happened.SearchSpaceChanged: self._user.search_space,
            happened.DataImported: self._user.data,
            happened.Tick: self._user.time_passed,
        }
        # The parts change these and never replace them.
        self.trials = self._trials.all  # by id, in the order in which they were created
        self.live = self._trials.live  # those that have not ended, by id
        self.waiting = self._trials.waiting  # those that wait for a slot, the next one first
        self.counts = self._trials.counts  # the number of trials by status
        self.slots = self._trials.slots
        self.silent_agents = self._trials.silent_agents  # they give no sign of life
        self.best = self._rules.best
        self.families = self._rules.families
        self.failures = self._rules.failures  # the last five trials that failed

    @property
    def has_failed_alike(self) -> bool:
        """Whether the experiment was ended because its first trials failed alike."""
        return self._rules.streak.is_full

    # ------------------------------------------------------------------ the ways in and out

    def handle(self, event: Event) -> list[Effect]:
        """Handle an event; return its effects, in order, with the event's cause."""
        pending = self._pending
        pending.effects = effects = []
        pending.now = event.time
        self.handlers[type(event)](event)
        for effect in effects:
            effect.cause = event.cause
        return effects

    def take_changes(self) -> Changes:
        """Return the changes to commit before the effects so far are performed."""
        return self._pending.take_changes()

    @property
    def new_results(self) -> Sequence[MetricRow]:
        """The results since `take_changes`."""
        return self._pending.changes.metrics

    def snapshot(self) -> RunnerSnapshot:
        """Return what a resumed runner needs besides the trials."""
        return {
            "asked": list(self._rules.requests.asked),
            "tuner_has_more": self._rules.requests.has_more,
            "lost_agents": self._trials.slots.snapshot(),
            "again": [trial.sequence_id for trial in self._trials.requeued()],
            "streak": self._rules.streak.snapshot(),
            "stall_is_told": self._trials.stall_was_reported,
            "any_results": list(self._state.any_results),
            "has_asked": self._state.has_asked,
        }

    def restore(self, trials: Iterable[Trial], snapshot: Mapping[str, Json], run_time: float) -> None:
        """Restore an experiment from its store (the trials in the order of their sequence ids)."""
        self._rules.requests.asked = deque(snapshot.get("asked", ()))
        self._rules.requests.has_more = snapshot.get("tuner_has_more", True)
        self._rules.streak.restore(snapshot.get("streak"))
        self._trials.stall_was_reported = snapshot.get("stall_is_told", False)
        self._state.any_results = tuple(snapshot.get("any_results", ()))
        self._state.has_asked = snapshot.get("has_asked")
        self._trials.deadlines.restore(run_time)
        self._trials.restore(trials, snapshot.get("again", ()), snapshot.get("lost_agents", {}))
        self._rules.restore()

    def shift_starts(self, seconds: float) -> None:
        """Shift the start times of running trials after the clock was set while no manager ran."""
        for trial in self.live.values():
            if trial.start_time is not None:
                trial.start_time += seconds
                self._pending.note(trial)

    # ------------------------------------------------------------------ the state of the experiment

    @property
    def status(self) -> ExperimentStatus:
        """The status of the experiment."""
        return self._state.status

    @property
    def reason(self) -> str:
        """Why the experiment ended early."""
        return self._state.reason

    @property
    def error(self) -> str:
        """The traceback that ended the experiment."""
        return self._state.error

    @property
    def limits(self) -> Limits:
        """The present limits of the experiment."""
        return self._state.limits

    @property
    def created(self) -> int:
        """How many trials were created."""
        return self._trials.created

    @property
    def requested(self) -> int:
        """How many trials the tuner was asked for and has neither proposed nor declined."""
        return self._rules.requests.total

    @property
    def is_stalled(self) -> bool:
        """Whether all trials wait for a resume, and nothing else can happen."""
        return self._rules.is_stalled

    @property
    def is_ending(self) -> bool:
        """Whether the experiment is stopping or over."""
        return self._state.is_ending

    def is_finished(self) -> bool:
        """Return whether the experiment is over."""
        return self._state.status.is_final

    def get_trial(self, trial_id: str) -> Trial | None:
        """Return the trial with this id."""
        return self.trials.get(trial_id)

    def get_trials(self) -> list[Trial]:
        """Return all trials, in the order in which they were created."""
        return list(self.trials.values())

    def results(self) -> list[tuple[Trial, str]]:
        """Return the trials with their final results as JSON text; of repeats the first trial, with the mean."""
        if not self.families.are_on:
            return [(trial, trial.final) for trial in self.trials.values() if trial.final is not None]
        reports = [(family.first, self.families.report(family)) for family in self.families]
        return [(first, report[0]) for first, report in reports if report is not None]

    def warnings(self) -> Iterator[str]:
        """Yield the present warnings, as sentences: what the scripts do wrong, silent agents."""
        if unread := self._state.unread_result:
            yield f"results that are not numbers are kept, but neither assessor nor tuner gets them: {unread}"
        if self._state.has_asked is False:
            yield f"{TUNES_NOTHING}: {TUNE_SOMETHING}"
        for agent in self.silent_agents:
            runs = [trial for trial in self.live.values() if trial.agent == agent and trial.is_assigned]
            what = f"trial {runs[0].sequence_id} runs there" if runs else "it gets nothing new to do"
            yield f"agent {agent} gives no sign of life: {what}"

    def elapsed(self, now: float) -> float:
        """Return for how many seconds the experiment has run, over all its managers."""
        return self._trials.deadlines.elapsed(now)

    def next_deadline(self) -> float | None:
        """Return the time of the next deadline, when a `Tick` is due; None: never."""
        limits = self.limits
        return self._trials.deadlines.next(limits.max_experiment_duration, limits.max_trial_duration)

    def orders(self) -> list[AttemptOrder]:
        """Return the attempts that an executor was asked to run and that have not ended."""
        return [self._trials.order(trial) for trial in self._trials.assigned()]

    def stopping(self) -> list[Trial]:
        """Return the trials that an executor was asked to end or to pause and that have not ended."""
        return [trial for trial in self._trials.assigned() if trial.verdict is not None]

    def copies(self) -> list[CopyCheckpoint]:
        """Return the copies of checkpoints from which future attempts start; some may exist already."""
        return self._trials.copies()

    def next_agents(self) -> list[str]:
        """Return the agents that a new experiment uses first; none for a resumed experiment."""
        if self.trials or self.status.is_final:
            return []
        concurrency = self.limits.trial_concurrency
        bound = self.limits.max_trial_number or concurrency
        return self.slots.first_agents(min(concurrency, bound, _AGENTS_AHEAD))

    def why_waiting(self, trial: Trial) -> str:
        """Say why a WAITING trial does not run yet."""
        return self._trials.why_waiting(trial)

    def waits(self) -> list[Wait]:
        """Return what the experiment waits for, as far as it is known here."""
        return list(
            waits_of(self.status, self.live.values(), self.limits.max_trial_duration, self.why_waiting)
        )

    def why_not_add(self) -> str:
        """Say why no trial can be added; return an empty text if one can."""
        return self._user.why_not_add()
