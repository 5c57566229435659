"""The trials of one experiment: which wait, which run and where, and all their moves.

`ExperimentRules` decides about the experiment when a trial has ended.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping

from ..protocol import CommandType, budget_and_donor, repeat_number, trial_end_payload
from . import attempts
from .effects import AttemptOrder, AttemptRow, CopyCheckpoint, PauseTrial, Pending, StartTrial, StopTrial
from .events import AttemptEvent
from .experiment_state import Deadlines, ExperimentState
from .ledger import Assignment, Ledger, Request
from .slots import Slots
from .trial import Cause, Trial, TrialStatus, Verdict, new_trial_id
from .verdicts import is_checkpoint_gone

# Trials queue in the agents while the last `_ALIKE` trials took at most `_VERY_SHORT` seconds each. A longer trial
# delays those that queue, so none joins a queue whose first trial has run for more than `_OVERDUE` seconds.
_ALIKE = 8
_VERY_SHORT = 0.01
_OVERDUE = 0.1


class Trials:
    """All trials of one experiment, and what they hold.

    A live trial waits, is assigned (it has a slot, or queues for it) or is PAUSED, and never two of these. A trial
    that holds a slot holds its resources in the ledger; one that queues takes them over.
    """

    def __init__(self, state: ExperimentState, ledger: Ledger, request: Request, pending: Pending) -> None:
        self.state = state
        self.ledger = ledger
        self.request = request
        self.pending = pending
        self.all: dict[str, Trial] = {}  # by id, in the order of their sequence ids
        self.live: dict[str, Trial] = {}  # those of `all` whose status is not final
        self._heirs: dict[str, Trial] = {}  # PAUSED, and resumed once another trial has saved its checkpoint
        self.waiting: deque[Trial] = deque()  # WAITING without a slot; those that ran before come first
        self.counts: Counter[TrialStatus] = Counter()  # of all trials, by status
        self.created = 0
        self.slots = Slots()
        self.deadlines = Deadlines()
        self.silent_agents: set[str] = set()  # no trial starts on them
        self._durations = deque([math.inf], maxlen=_ALIKE)  # seconds that the last trials ran
        self.stall_was_reported = False  # the tuner was asked to resume trials, and none was since

    # ------------------------------------------------------------------ lookups

    def current(self, event: AttemptEvent) -> Trial | None:
        """Return the live trial of an event, or None if the event is not about its current attempt."""
        trial = self.live.get(event.trial_id)
        return trial if trial is not None and trial.attempt == event.attempt and trial.is_assigned else None

    def assigned(self) -> list[Trial]:
        """Return the trials that an executor was asked to run and that have not ended, in the order of each agent."""
        return self.slots.trials()

    @property
    def paused_count(self) -> int:
        """How many trials are PAUSED."""
        return self.counts.get(TrialStatus.PAUSED, 0)  # `Counter` is slow with what it has not counted

    def order(self, trial: Trial) -> AttemptOrder:
        """Return the order for the current attempt of an assigned trial."""
        if trial.slot is None or trial.agent is None:
            raise RuntimeError(f"trial {trial.trial_id} is not assigned")
        return AttemptOrder(
            trial_id=trial.trial_id,
            attempt=trial.attempt,
            sequence_id=trial.sequence_id,
            record=trial.record,
            slot=trial.slot,
            agent=trial.agent,
            gpus=trial.gpus,
            first_sequence=trial.first_sequence,
            start_time=trial.start_time,
            checkpoint=trial.checkpoint,
            budget=trial.budget,
            mark=trial.mark,
        )

    def copies(self) -> list[CopyCheckpoint]:
        """Return the copies of checkpoints from which future attempts start."""
        return [copy for trial in self.live.values() for copy in _copy_for(trial)]

    def why_waiting(self, trial: Trial) -> str:
        """Say why a WAITING trial does not run yet."""
        if (first := self.slots.before(trial)) is not None:
            return f"its agent {trial.agent} runs trial {first.sequence_id} first"
        if trial.is_assigned:
            return f"its agent {trial.agent} is starting"
        if len(self.slots) >= self.state.limits.trial_concurrency:
            return f"all {self.state.limits.trial_concurrency} slots (trial_concurrency) are taken"
        return (
            "it starts in a moment" if self.ledger.fits(self.request) else self.ledger.why_not(self.request)
        )

    def requeued(self) -> list[Trial]:
        """Return the waiting trials that ran before, which are the first."""
        return list(itertools.takewhile(lambda trial: trial.attempt > 0, self.waiting))

    # ------------------------------------------------------------------ from the proposal to the start

    def add(self, parameter_id: int | str | None, record: str) -> Trial:
        """Create a trial, the last to wait."""
        trial_id = new_trial_id(self.state.experiment_id, self.created, self.all)
        trial = Trial(
            trial_id=trial_id,
            sequence_id=self.created,
            parameter_id=parameter_id,
            record=record,
            created=self.pending.now,
        )
        trial.budget, source = budget_and_donor(record)
        donor = self.all.get(source or "")
        self.created += 1
        self.all[trial_id] = self.live[trial_id] = trial
        self.counts[trial.status] += 1
        self.waiting.append(trial)
        self.pending.note(trial)
        if donor is not None and _is_pausing(donor):
            trial.resume = json.dumps({"checkpoint_of": source})
            self.pause(trial, f"until trial {donor.sequence_id} has saved its checkpoint")
        else:
            attempts.start_from(trial, donor)
            self.pending.effects += _copy_for(trial)
        return trial

    def start_waiting(self) -> None:
        """Start waiting trials, in order, until slots or resources run out; short ones then queue in the agents."""
        limits = self.state.limits
        while self.waiting and len(self.slots) < limits.trial_concurrency and self.state.may_start:
            assignment = self.ledger.take(self.waiting[0].trial_id, self.request)
            if assignment is None:
                return
            trial = self.waiting.popleft()
            trial.gpus = assignment.gpus
            self.slots.take(trial, avoiding=self.silent_agents)
            self._assign(trial)
        are_very_short = len(self._durations) == _ALIKE and max(self._durations) <= _VERY_SHORT
        if are_very_short and not self.state.tuner_learns and not self.request.gpus:
            self._queue_waiting()

    @property
    def last_duration(self) -> float:
        """How many seconds the trial that ended last ran; infinite if none has ended."""
        return self._durations[-1]

    def _queue_waiting(self) -> None:
        """Queue waiting trials in the agents, which then begin the next one at once; retried trials wait for a slot."""
        most = self.ledger.totals.orders_per_agent
        while most > 1 and self.waiting and not self.waiting[0].attempt and self._may_queue:
            since = self.pending.now - _OVERDUE
            before = self.slots.queue(self.waiting[0], most, since=since, avoiding=self.silent_agents)
            if before is None:
                return
            trial = self.waiting.popleft()
            trial.gpus = before.gpus
            self._assign(trial)

    @property
    def _may_queue(self) -> bool:
        return self.state.may_start and len(self.slots) == self.state.limits.trial_concurrency

    def _assign(self, trial: Trial) -> None:
        trial.attempt += 1
        self.pending.note(trial)
        self.pending.effects.append(StartTrial(self.order(trial)))

    def started(self, trial: Trial, pid: int | None) -> None:
        """Note that the current attempt of a WAITING trial runs."""
        trial.start_time, trial.pid, trial.copy_of = self.pending.now, pid, None
        self._move(trial, Cause.STARTED)
        self.deadlines.watch(trial)

    def refused(self, trial: Trial, devices: Iterable[int]) -> None:
        """Put a trial that could not be started back to the head of the queue."""
        self._free_slot(trial)
        self.ledger.set_busy_elsewhere(frozenset(devices))
        self._move(trial, Cause.REFUSED)
        self.waiting.appendleft(trial)

    # ------------------------------------------------------------------ pause, resume, run again

    def pause(self, trial: Trial, reason: str) -> bool:
        """Pause a trial, at once if it waits, else after its next checkpoint; return whether it is paused."""
        if trial.final is not None:
            return False  # it is about to end
        trial.verdict = Verdict(Cause.PAUSED, reason)
        self.deadlines.forget(trial)
        self.pending.note(trial)
        if trial.is_assigned:
            self.pending.effects.append(PauseTrial(trial.trial_id, trial.attempt))
            return False
        self.waiting.remove(trial)
        self.paused(trial, trial.verdict)
        return True

    def paused(self, trial: Trial, verdict: Verdict) -> None:
        """Mark a trial as paused; if a resume was requested already, it waits for a slot."""
        if trial.is_assigned:
            self._keep_attempt(trial, "paused", verdict)
        self._free_slot(trial)
        self.deadlines.forget(trial)
        trial.verdict, trial.reason = None, verdict.reason
        self._move(trial, Cause.PAUSED)
        if trial.resume is not None and not self.state.is_ending:
            self.resume(trial)

    def resume(self, trial: Trial) -> None:
        """Apply its resume to a PAUSED trial and let it wait for its next attempt.

        While the trial whose checkpoint it gets is being paused, it stays PAUSED, until that checkpoint is saved.
        """
        resume: attempts.PendingResume = json.loads(trial.resume or "{}")
        donor = self.all.get(resume.get("checkpoint_of", ""))
        if donor is not None and _is_pausing(donor):
            self._heirs[trial.trial_id] = trial
            return
        trial.resume = None
        attempts.exploit(trial, resume, donor)
        self.pending.effects += _copy_for(trial)
        self._requeue(trial, Cause.RESUMED)

    def run_again(self, trial: Trial, verdict: Verdict) -> None:
        """Let a trial whose attempt failed wait for its next attempt."""
        attempts.count_failure(trial, verdict)
        self._keep_attempt(trial, "retried", verdict)
        self._free_slot(trial)
        self.deadlines.forget(trial)
        trial.verdict = None
        if is_checkpoint_gone(trial.error) or attempts.came_to_nothing(trial, verdict):
            attempts.forget_checkpoint(trial)
        self._requeue(trial, Cause.RETRIED)

    def reopen(self, trial: Trial) -> None:
        """Let a trial that has ended wait for its next attempt."""
        self.live[trial.trial_id] = trial
        self._requeue(trial, Cause.RESUMED)

    def _requeue(self, trial: Trial, cause: Cause) -> None:
        """Queue a trial for its next attempt, before all that were never started; or for its first one, as the last."""
        if (superseded := attempts.rewind(trial)) is not None:
            self.pending.changes.superseded.append(superseded)
        trial.reason = ""
        self.stall_was_reported = False
        self._move(trial, cause)
        self.waiting.insert(len(self.requeued()) if trial.attempt else len(self.waiting), trial)

    # ------------------------------------------------------------------ the end

    def stop_attempt(self, trial: Trial, verdict: Verdict) -> None:
        """Set the verdict on a trial and stop its process; only a pause can be replaced by a later verdict."""
        if trial.verdict is not None and trial.verdict.cause is not Cause.PAUSED:
            return
        trial.verdict = verdict
        self.deadlines.forget(trial)
        self.pending.note(trial)
        if trial.is_assigned:
            self.pending.effects.append(StopTrial(trial.trial_id, trial.attempt))

    def end(self, trial: Trial, verdict: Verdict) -> None:
        """End a trial for good and notify the dispatcher."""
        attempts.count_failure(trial, verdict)
        trial.end_time, trial.reason, trial.kind = self.pending.now, verdict.reason, verdict.kind
        self._durations.append(math.inf if trial.start_time is None else trial.end_time - trial.start_time)
        self._free_slot(trial)
        self._move(trial, verdict.cause)
        del self.live[trial.trial_id]
        self.deadlines.forget(trial)
        trial.verdict = trial.resume = trial.copy_of = None
        trial.story = ()  # only live trials can be asked to make a wrong move
        payload = trial_end_payload(
            trial.trial_id, trial.status, trial.record, kind=trial.kind, repeat=repeat_number(trial.record)
        )
        self.pending.send(CommandType.TrialEnd, payload)

    def lose_agent(self, agent: str | None) -> None:
        """Give the slot of a lost agent another one next time."""
        if agent is not None:
            self.silent_agents.discard(agent)
            self.slots.lose(agent)

    # ------------------------------------------------------------------ restoring

    def restore(
        self, trials: Iterable[Trial], requeued: Iterable[int], lost_agents: Mapping[str, int]
    ) -> None:
        """Restore trials from the store, in the order of their sequence ids; the `requeued` wait first."""
        for trial in trials:
            self.all[trial.trial_id] = trial
            self.created = max(self.created, trial.sequence_id + 1)
            self.counts[trial.status] += 1
            if not trial.status.is_final:
                self.live[trial.trial_id] = trial
                if trial.slot is None and trial.resume is not None:
                    self._heirs[trial.trial_id] = trial
        waiting = {
            trial.sequence_id: trial
            for trial in self.live.values()
            if trial.status is TrialStatus.WAITING and not trial.is_assigned
        }
        first = [waiting.pop(sequence_id) for sequence_id in requeued if sequence_id in waiting]
        self.waiting.extend([*first, *waiting.values()])
        for trial in self.slots.restore(self.live.values(), lost_agents):
            self.ledger.claim(trial.trial_id, self.request, Assignment(trial.gpus))
        for trial in sorted(self.assigned(), key=lambda trial: trial.start_time or 0.0):
            self.deadlines.watch(trial)

    # ------------------------------------------------------------------ what the moves share

    def _move(self, trial: Trial, cause: Cause) -> None:
        self.counts[trial.status] -= 1
        trial.move(cause)
        self.counts[trial.status] += 1
        self.pending.note(trial)

    def _free_slot(self, trial: Trial) -> None:
        if trial.is_assigned:
            next_one = self.slots.free(trial)
            self.ledger.release(trial.trial_id)
            if next_one is not None:
                self.ledger.claim(next_one.trial_id, self.request, Assignment(next_one.gpus))
            self._resume_heirs()

    def _resume_heirs(self) -> None:
        """Resume the trials that waited for another one's checkpoint, unless they have ended."""
        heirs, self._heirs = self._heirs, {}
        for heir in heirs.values():
            if heir.status is TrialStatus.PAUSED and heir.resume is not None and not self.state.is_ending:
                self.resume(heir)

    def _keep_attempt(self, trial: Trial, outcome: str, verdict: Verdict) -> None:
        """Record an attempt that is not the trial's last; `outcome` is what happens next."""
        attempt = AttemptRow(
            sequence_id=trial.sequence_id,
            attempt=trial.attempt,
            outcome=outcome,
            agent=trial.agent,
            start_time=trial.start_time,
            end_time=self.pending.now,
            reason=verdict.reason,
            kind=verdict.kind,
            exit_code=trial.exit_code,
            error=trial.error,
        )
        self.pending.changes.attempts.append(attempt)


def _is_pausing(trial: Trial) -> bool:
    return trial.is_assigned and trial.verdict is not None and trial.verdict.cause is Cause.PAUSED


def _copy_for(trial: Trial) -> list[CopyCheckpoint]:
    if trial.copy_of is None or trial.checkpoint is None:
        return []
    return [CopyCheckpoint(trial.copy_of, trial.checkpoint)]
