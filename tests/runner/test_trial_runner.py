"""The state machine as a whole: any order of events, restoring, replaying."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish, SendCommand, StartTrial, StopTrial
from pitchpipe.runner.events import event_of, recorded
from pitchpipe.runner.experiment_state import ExperimentStatus, Limits, Retries
from pitchpipe.runner.ledger import Ledger, Request, Totals
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

from .driver import EVENT_KINDS, Driver, of_type, running_trial
from .invariants import broken_invariants

TOTALS = Totals(amounts={"CPU": 2.0}, orders_per_agent=2)
_VALUES = st.sampled_from(["0.5", "1", "NaN", '"text"', '{"default": 2}', '{"other": 2}', "null"])


class RunnerMachine(RuleBasedStateMachine):
    """Throws events at a runner in any order, also those that come too late or twice."""

    @initialize(
        concurrency=st.integers(1, 3),
        number=st.integers(1, 8),
        limit=st.sampled_from([None, 50.0]),
        retries=st.sampled_from([Retries(), Retries(0), Retries(2)]),
    )
    def begin(self, concurrency: int, number: int, limit: float | None, retries: Retries) -> None:
        limits = Limits(
            trial_concurrency=concurrency,
            max_trial_number=number,
            max_trial_duration=20.0,
            max_experiment_duration=limit,
            max_identical_failures=3,
            retries=retries,
        )
        self.begin_recording(TrialRunner("m", limits, Ledger(TOTALS), Request(cpus=1.0)))
        self.now = 0.0
        self.asked = self.answered = 0
        self.started: dict[tuple[str, int], str] = {}
        self.finished = 0
        self.ends_sent: list[str] = []
        self.finals_sent: list[str] = []
        self.unsent: dict[str, int] = {}

    def begin_recording(self, runner: TrialRunner) -> None:
        """Start with a runner, and keep a copy of its state."""
        self.runner, self.begun = runner, copy.deepcopy(runner)
        self.recording: list[str] = []
        self.effects: list[Any] = []

    def check_replay(self) -> None:
        rows = map(json.loads, self.recording)
        effects = [effect for row in rows for effect in self.begun.handle(event_of(row))]
        assert effects == self.effects
        assert [effect.cause for effect in effects] == [effect.cause for effect in self.effects]
        assert (self.begun.trials, self.begun.status) == (self.runner.trials, self.runner.status)
        assert (self.begun.snapshot(), self.begun.reason) == (self.runner.snapshot(), self.runner.reason)

    def teardown(self) -> None:
        """Replay all recorded events; the state and the effects must be the same."""
        self.check_replay()

    def handle(self, event: happened.Event) -> None:
        event.cause = f"event {len(self.recording)}"
        self.recording.append(json.dumps(recorded(event)))
        effects = self.runner.handle(event)
        assert {effect.cause for effect in effects} <= {event.cause}
        self.effects += effects
        for effect in effects:
            if isinstance(effect, StartTrial):
                key = effect.order.trial_id, effect.order.attempt
                assert key not in self.started
                assert all(trial_id != key[0] or attempt < key[1] for trial_id, attempt in self.started)
                self.started[key] = "running"
            elif isinstance(effect, Finish):
                self.finished += 1
            elif isinstance(effect, SendCommand):
                self.note(effect)

    def note(self, effect: SendCommand) -> None:
        payload = json.loads(effect.payload)
        if effect.command is CommandType.RequestTrialJobs:
            self.asked += payload
        elif effect.command is CommandType.TrialEnd:
            self.ends_sent.append(payload["trial_job_id"])
        elif effect.command in (CommandType.UpdateSearchSpace, CommandType.ImportData):
            assert not self.runner.is_finished()
        elif payload["type"] == "FINAL":
            assert payload["trial_job_id"] not in self.ends_sent
            self.finals_sent.append(payload["trial_job_id"])
        else:
            # Each result is sent once, in order, whichever attempt reports it.
            assert payload["sequence"] >= self.unsent.get(payload["trial_job_id"], 0)
            self.unsent[payload["trial_job_id"]] = payload["sequence"] + 1

    @rule(learns=st.booleans())
    def ready(self, learns: bool) -> None:
        self.handle(happened.DispatcherReady(self.now, learns=learns))

    @precondition(lambda self: self.answered < self.asked)
    @rule()
    def propose(self) -> None:
        self.answered += 1
        self.handle(happened.ParametersArrived(self.now, self.answered, '{"parameters": {}}'))

    @precondition(lambda self: self.answered < self.asked)
    @rule()
    def no_more(self) -> None:
        self.answered = self.asked
        self.handle(happened.NoMoreParameters(self.now))

    def any_attempt(self, data: st.DataObject) -> tuple[str, int]:
        return data.draw(st.sampled_from(sorted(self.started)))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.handle(happened.AttemptStarted(self.now, *self.any_attempt(data)))

    @precondition(lambda self: self.started)
    @rule(
        data=st.data(),
        value=_VALUES,
        kind=st.sampled_from(["intermediate", "final"]),
        sequence=st.integers(0, 3),
    )
    def report(self, data: st.DataObject, value: str, kind: Any, sequence: int) -> None:
        self.handle(
            happened.Reported(self.now, *self.any_attempt(data), kind=kind, sequence=sequence, value=value)
        )

    @precondition(lambda self: self.started)
    @rule(data=st.data(), code=st.sampled_from([0, 1]), lost=st.booleans(), paused=st.booleans())
    def end(self, data: st.DataObject, code: int, lost: bool, paused: bool) -> None:
        self.handle(
            happened.AttemptEnded(
                self.now, *self.any_attempt(data), exit_code=code, lost=lost, paused=paused and not lost
            )
        )

    @precondition(lambda self: self.started)
    @rule(data=st.data(), sequence=st.integers(0, 3))
    def save(self, data: st.DataObject, sequence: int) -> None:
        trial_id, attempt = self.any_attempt(data)
        self.handle(
            happened.CheckpointSaved(self.now, trial_id, attempt, name=f"{attempt}-1", sequence=sequence)
        )

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        self.handle(happened.PauseVerdict(self.now, self.any_attempt(data)[0], "rung"))

    @precondition(lambda self: self.started)
    @rule(data=st.data(), parameters=st.sampled_from([None, {"x": 1}]), from_another=st.booleans())
    def resume(self, data: st.DataObject, parameters: Any, from_another: bool) -> None:
        donor = self.any_attempt(data)[0] if from_another else None
        trial_id = self.any_attempt(data)[0]
        self.handle(happened.ResumeRequested(self.now, trial_id, parameters=parameters, checkpoint_of=donor))

    @rule()
    def dispatcher_is_idle(self) -> None:
        self.handle(happened.DispatcherAnswered(self.now))

    @precondition(lambda self: not self.runner.is_finished())
    @rule()
    def restart(self) -> None:
        """Kill the manager; the next one restores what it committed."""
        old = self.runner
        new = TrialRunner("m", old.limits, Ledger(TOTALS), Request(cpus=1.0))
        new.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), old.elapsed(self.now))
        assert [t.trial_id for t in new.waiting] == [t.trial_id for t in old.waiting]
        assert (new.orders(), new.copies(), +new.counts) == (old.orders(), old.copies(), +old.counts)
        if old.status is not ExperimentStatus.STOPPING:  # an experiment that was stopping does not continue
            self.check_replay()
            self.begin_recording(new)
            self.handle(happened.DispatcherReady(self.now, learns=False))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def verdict(self, data: st.DataObject) -> None:
        self.handle(happened.KillVerdict(self.now, self.any_attempt(data)[0], "bad"))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.handle(happened.TrialKillRequested(self.now, self.any_attempt(data)[0]))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        self.handle(happened.StartRefused(self.now, *self.any_attempt(data), reason="busy"))

    @rule()
    def add(self) -> None:
        self.handle(happened.TrialAddRequested(self.now, '{"parameter_id": null, "parameters": {}}'))

    def can_change(self) -> bool:
        return self.runner.status is not ExperimentStatus.STOPPING and not self.runner.is_finished()

    @precondition(can_change)
    @rule(concurrency=st.integers(1, 4), more=st.integers(0, 3), limit=st.sampled_from([None, 500.0]))
    def change_limits(self, concurrency: int, more: int, limit: float | None) -> None:
        number = max(1, self.runner.created + self.runner.requested + more)
        self.handle(happened.LimitsChanged(self.now, concurrency, number, limit))
        assert self.runner.limits.trial_concurrency == concurrency

    @precondition(can_change)
    @rule(is_space=st.booleans())
    def inform_tuner(self, is_space: bool) -> None:
        changed = happened.SearchSpaceChanged(self.now, "{}")
        self.handle(changed if is_space else happened.DataImported(self.now, "[]"))

    @rule(seconds=st.floats(0, 30))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.handle(happened.Tick(self.now))

    @rule()
    def stop(self) -> None:
        self.handle(happened.StopRequested(self.now))

    @rule(slot=st.integers(0, 2), is_over=st.booleans())
    def agent_is_silent(self, slot: int, is_over: bool) -> None:
        self.handle(happened.AgentSilent(self.now, f"{slot}-0", is_over))

    @rule(slot=st.integers(0, 2))
    def idle_agent_is_lost(self, slot: int) -> None:
        self.handle(happened.AgentLost(self.now, f"{slot}-0"))

    @rule(command=st.integers(0, 2), died=st.booleans())
    def dispatcher_fails(self, command: int, died: bool) -> None:
        self.handle(happened.DispatcherFailed(self.now, message="it failed", command=command, died=died))

    @invariant()
    def state_is_sound(self) -> None:
        if not hasattr(self, "runner"):
            return
        assert broken_invariants(self.runner) == []
        assert len(self.ends_sent) == len(set(self.ends_sent))
        assert len(self.finals_sent) == len(set(self.finals_sent))
        assert self.runner.limits.max_trial_number is not None
        assert self.runner.created <= self.runner.limits.max_trial_number
        assert self.finished == int(self.runner.is_finished())
        ended = {trial.trial_id for trial in self.runner.get_trials() if trial.status.is_final}
        assert ended == set(self.ends_sent)
        for trial in self.runner.get_trials():
            assert trial.first_sequence <= trial.next_sequence
            if trial.status is TrialStatus.PAUSED and trial.resume is not None:  # until its donor is paused
                donor = self.runner.trials[json.loads(trial.resume)["checkpoint_of"]]
                assert donor.is_assigned
                assert donor.verdict is not None


RunnerMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
test_any_order_of_events = RunnerMachine.TestCase


def test_trial_that_was_lost_with_the_manager_is_run_again_when_the_dispatcher_is_back() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.restart()
    assert of_type(driver.end(trial, exit_code=None, lost=True), StartTrial) == []
    assert trial.status is TrialStatus.WAITING
    (start,) = of_type(driver.ready(), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (trial.trial_id, 2)


@given(st.lists(st.sampled_from(["propose", "succeed", "fail", "stop"]), max_size=30))
@settings(deadline=None)
def test_restored_runner_continues_like_the_one_it_replaces(moves: list[str]) -> None:
    driver = Driver(trial_concurrency=2, max_trial_number=6)
    driver.ready()
    for move in moves:
        live = [trial for trial in driver.runner.live.values() if trial.is_assigned]
        if move == "propose" and driver.runner.requested:
            driver.propose(x=1)
        elif move == "succeed" and live:
            driver.succeed(live[0])
        elif move == "fail" and live:
            driver.end(live[0], exit_code=1)
        elif move == "stop":
            driver.handle(happened.StopRequested(driver.now))
    old = driver.runner
    new = TrialRunner("test", old.limits, Ledger(Totals()))
    new.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), old.elapsed(driver.now))
    assert broken_invariants(new) == []
    assert (new.created, new.requested) == (old.created, old.requested)
    assert (new.orders(), +new.counts) == (old.orders(), +old.counts)


def test_every_kind_of_event_has_a_handler_but_the_one_that_ends_the_manager() -> None:
    runner = TrialRunner("exp", Limits(), Ledger(Totals()))
    assert set(runner.handlers) == EVENT_KINDS - {happened.ExecutorFailed}


def test_effects_carry_the_cause_of_their_event() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=2)
    asked = driver.handle(happened.DispatcherReady(1.0))
    started = driver.handle(happened.ParametersArrived(2.0, 0, "{}", cause="reply 1"))
    (trial,) = driver.runner.get_trials()
    stopped = driver.handle(happened.TrialKillRequested(3.0, trial.trial_id, cause="user: kill"))
    assert [(type(effect), effect.cause) for effect in [*asked, *started, *stopped]] == [
        (SendCommand, ""),
        (StartTrial, "reply 1"),
        (StopTrial, "user: kill"),
    ]
