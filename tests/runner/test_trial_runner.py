"""The experiment's state machine: what it does about each event, and that no order of events breaks it."""

from __future__ import annotations

import copy
import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.description import troubles_of
from pitchpipe.runner.effects import (
    CopyCheckpoint,
    Finish,
    PauseTrial,
    RestoreDispatcher,
    SendCommand,
    StartTrial,
    StopTrial,
)
from pitchpipe.runner.experiment_status import EXPERIMENT_MOVES, ExperimentStatus
from pitchpipe.runner.invariants import broken_invariants
from pitchpipe.runner.ledger import Ledger, Request, Totals
from pitchpipe.runner.limits import Limits
from pitchpipe.runner.objectives import Objective
from pitchpipe.runner.recording import recorded, replay
from pitchpipe.runner.retries import Retries
from pitchpipe.runner.trial import TRIAL_MOVES, Cause, FailureKind, Trial, TrialStatus, WrongMove
from pitchpipe.runner.trial_runner import TrialRunner


class Driver:
    """A runner, and the part of the dispatcher and of the executor played by the test."""

    def __init__(self, request: Request | None = None, totals: Totals | None = None, **limits: Any) -> None:
        limits.setdefault("trial_concurrency", 2)
        self.runner = TrialRunner("test", Limits(**limits), Ledger(totals or Totals()), request)
        self.now = 1000.0
        self.parameter_id = 0
        self.effects: list[Any] = []

    def handle(self, event: happened.Event) -> list[Any]:
        effects = self.runner.handle(event)
        assert broken_invariants(self.runner) == []
        self.effects += effects
        return effects

    def ready(self) -> list[Any]:
        return self.handle(happened.DispatcherReady(self.now))

    def propose(self, **parameters: Any) -> list[Any]:
        record = json.dumps({"parameter_id": self.parameter_id, "parameters": parameters})
        self.parameter_id += 1
        return self.handle(happened.ParametersArrived(self.now, self.parameter_id - 1, record))

    def start(self, trial: Trial) -> list[Any]:
        return self.handle(happened.AttemptStarted(self.now, trial.trial_id, trial.attempt, 4711))

    def report(
        self, trial: Trial, value: Any, kind: str = "intermediate", sequence: int | None = None
    ) -> list[Any]:
        number = (
            sequence
            if sequence is not None
            else (trial.next_sequence if kind == "intermediate" else trial.finals)
        )
        text = json.dumps(value)
        return self.handle(happened.Reported(self.now, trial.trial_id, trial.attempt, kind, number, text))  # type: ignore[arg-type]

    def end(self, trial: Trial, **how: Any) -> list[Any]:
        return self.handle(
            happened.AttemptEnded(self.now, trial.trial_id, trial.attempt, **{"exit_code": 0, **how})
        )

    def save(self, trial: Trial) -> list[Any]:
        """The trial saves a checkpoint of where it is."""
        name = f"{trial.attempt}-{trial.next_sequence}"
        return self.handle(
            happened.CheckpointSaved(self.now, trial.trial_id, trial.attempt, name, trial.next_sequence)
        )

    def running_trial(self) -> Trial:
        """A trial that runs, in an experiment that was just begun."""
        self.ready()
        self.propose(x=1)
        trial = self.runner.get_trials()[-1]
        self.start(trial)
        return trial

    def succeed(self, trial: Trial, value: Any = 0.5) -> list[Any]:
        self.report(trial, value, "final")
        return self.end(trial)


def sent(effects: list[Any], command: CommandType) -> list[Any]:
    """The payloads of the commands of one kind."""
    return [
        json.loads(effect.payload)
        for effect in effects
        if isinstance(effect, SendCommand) and effect.command is command
    ]


def of_type(effects: list[Any], kind: Any) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


# --------------------------------------------------------------------------- asking for trials, starting them


def test_ready_dispatcher_is_asked_for_as_many_trials_as_may_run() -> None:
    driver = Driver(trial_concurrency=3)
    assert sent(driver.ready(), CommandType.RequestTrialJobs) == [3]
    assert driver.runner.status is ExperimentStatus.RUNNING


def test_request_is_bounded_by_max_trial_number() -> None:
    driver = Driver(trial_concurrency=3, max_trial_number=2)
    assert sent(driver.ready(), CommandType.RequestTrialJobs) == [2]


def test_trials_asked_for_count_against_max_trial_number() -> None:
    driver = Driver(trial_concurrency=3, max_trial_number=3)
    driver.ready()
    driver.propose(x=1)
    assert sent(driver.end(driver.runner.get_trials()[0]), CommandType.RequestTrialJobs) == []


def test_proposed_parameters_start_a_trial_on_the_lowest_free_slot() -> None:
    driver = Driver()
    driver.ready()
    (first,) = of_type(driver.propose(x=1), StartTrial)
    (second,) = of_type(driver.propose(x=2), StartTrial)
    assert [first.order.slot, second.order.slot] == [0, 1]
    assert json.loads(first.order.record)["parameters"] == {"x": 1}
    assert first.order.trial_id != second.order.trial_id


def test_ended_trial_is_told_to_the_dispatcher_and_its_slot_is_asked_for_again() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.report(trial, 0.25, "final")
    effects = driver.end(trial)
    (end,) = sent(effects, CommandType.TrialEnd)
    assert (end["trial_job_id"], end["event"]) == (trial.trial_id, "SUCCEEDED")
    assert json.loads(end["hyper_params"])["parameters"] == {"x": 1}
    assert sent(effects, CommandType.RequestTrialJobs) == [1]
    assert trial.status is TrialStatus.SUCCEEDED


def test_final_result_is_sent_before_the_end_of_its_trial() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.succeed(trial)
    commands = [effect.command for effect in of_type(driver.effects, SendCommand)]
    assert commands.index(CommandType.ReportMetricData) < commands.index(CommandType.TrialEnd)


def test_trial_waits_while_the_ledger_has_nothing_to_give() -> None:
    driver = Driver(Request(gpus=1), Totals(devices=(0,)))
    driver.ready()
    driver.propose(x=1)
    assert of_type(driver.propose(x=2), StartTrial) == []
    waiting = driver.runner.waiting[0]
    first = driver.runner.get_trials()[0]
    assert driver.runner.why_waiting(waiting) == f"needs 1 GPU, and GPU 0 is taken by {first.trial_id}"
    (start,) = of_type(driver.succeed(first), StartTrial)
    assert start.order.trial_id == waiting.trial_id
    assert start.order.gpus == (0,)


def test_refused_start_returns_the_trial_to_the_head_of_the_queue() -> None:
    driver = Driver(Request(gpus=1), Totals(devices=(0,)), trial_concurrency=1)
    driver.ready()
    driver.propose(x=1)
    trial = driver.runner.get_trials()[0]
    driver.handle(happened.StartRefused(driver.now, trial.trial_id, trial.attempt, "taken", devices=(0,)))
    assert trial.status is TrialStatus.WAITING
    assert not trial.is_assigned
    (start,) = of_type(driver.handle(happened.ResourcesChanged(driver.now)), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (trial.trial_id, 2)


# --------------------------------------------------------------------------- how trials end


@pytest.mark.parametrize(
    ("how", "kind", "reason"),
    [
        ({"exit_code": 3}, FailureKind.USER_ERROR, "exit code 3"),
        ({"exit_code": 2, "error": "t\nno such file\n"}, FailureKind.USER_ERROR, "exit code 2: no such file"),
        ({"exit_code": 2, "error": "error: too big\n"}, FailureKind.USER_ERROR, "exit code 2: error: too big"),
        ({"exit_code": 1, "error": "Traceback (most recent call last)\na.R: x\n"}, FailureKind.USER_ERROR, "a.R: x"),
        ({"exit_code": 127, "error": "command not found: t"}, FailureKind.USER_ERROR, "command not found: t"),
        ({"exit_code": 1, "error": "Tr\nKeyError: 'l'\n"}, FailureKind.USER_ERROR, "KeyError: 'l'"),
        ({"exit_code": None, "signal": 9}, FailureKind.KILLED, "killed by SIGKILL"),
        ({"exit_code": 139}, FailureKind.KILLED, "killed by SIGSEGV"),
        ({"exit_code": None, "signal": 9, "out_of_memory": True}, FailureKind.OOM, "killed by SIGKILL"),
        ({"exit_code": 1, "error": "Tr\nMemoryError"}, FailureKind.OOM, "MemoryError"),
        ({"exit_code": 1, "error": "Tr\ntorch.OutOfMemoryError: no"}, FailureKind.OOM, "torch.OutOfMemoryError: no"),
        ({"exit_code": 1, "error": "Error: CUDA out of memory."}, FailureKind.OOM, "Error: CUDA out of memory."),
        ({"exit_code": 1, "error": "Tr\nModuleNotFoundError: No m"}, FailureKind.IMPORT, "ModuleNotFoundError: No m"),
        ({"exit_code": 1, "error": "ImportError: x"}, FailureKind.IMPORT, "ImportError: x"),
        ({"exit_code": None, "lost": True, "error": "gone"}, FailureKind.INFRA, "gone"),
        ({}, FailureKind.USER_ERROR, "ended without reporting a final result"),
    ],
)  # fmt: skip
def test_attempt_without_a_result_fails_with_a_readable_reason(
    how: dict[str, Any], kind: FailureKind, reason: str
) -> None:
    driver = Driver(retries=Retries(0))
    trial = driver.running_trial()
    driver.end(trial, **how)
    assert (trial.status, trial.kind, trial.reason) == (TrialStatus.FAILED, kind, reason)


@pytest.mark.parametrize(
    ("code", "error", "reason"),
    [
        (2, "usage: train\nno such file\n", "exit code 2: no such file"),
        (2, "error: too big\n", "exit code 2: error: too big"),
        (1, "Traceback (most recent call last)\na.NoSuchRow: x\n", "a.NoSuchRow: x"),
        (1, "a.NoSuchRow: x\n", "exit code 1: a.NoSuchRow: x"),
        (127, "command not found: trainn", "command not found: trainn"),
    ],
)
def test_a_command_that_fails_tells_its_exit_code_unless_the_last_line_says_it_all(
    code: int, error: str, reason: str
) -> None:
    driver = Driver(retries=Retries(0))
    trial = driver.running_trial()
    driver.end(trial, exit_code=code, error=error)
    assert trial.reason == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [("abc", "'abc'"), ({"accuracy": 1}, "'default'"), (None, "None"), ([1], "[1]")],
)
@pytest.mark.parametrize("kind", ["intermediate", "final"])
def test_unusable_result_condemns_its_trial(kind: str, value: Any, reason: str) -> None:
    driver = Driver()
    trial = driver.running_trial()
    effects = driver.report(trial, value, kind)
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial, exit_code=None, signal=15)
    assert trial.status is TrialStatus.FAILED
    assert reason in trial.reason


def test_nan_as_a_final_result_fails_the_trial() -> None:
    driver = Driver()
    trial = driver.running_trial()
    effects = driver.report(trial, float("nan"), "final")
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.NAN)
    assert "NaN" in trial.reason


def test_second_final_result_is_kept_and_does_not_count() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.1, "final")
    effects = driver.report(trial, 0.2, "final")
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.final, trial.values) == (TrialStatus.SUCCEEDED, "0.1", (0.1,))
    assert trial.reason == "reported a final result 2 times; the first counts"
    assert [row.value for row in driver.runner.take_changes().metrics] == ["0.1", "0.2"]


def test_trial_that_fails_after_its_final_result_is_not_the_best() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.1, "final")
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    assert trial.final == "0.1"
    assert driver.runner.best.front == []


def test_kill_verdict_ends_the_trial_early_with_the_reason() -> None:
    driver = Driver()
    trial = driver.running_trial()
    verdict = happened.KillVerdict(driver.now, trial.trial_id, "0.81 below the median 0.86")
    assert of_type(driver.handle(verdict), StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert driver.handle(verdict) == []  # condemned once
    effects = driver.report(trial, 0.9)
    assert sent(effects, CommandType.ReportMetricData) == []  # nobody judges the condemned
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "0.81 below the median 0.86")


def test_final_result_is_worth_more_than_a_late_verdict() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.5, "final")
    assert driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "below the median")) == []
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "")


def test_condemned_trial_that_still_finishes_has_succeeded() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "below the median"))
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, signal=15)
    assert trial.status is TrialStatus.SUCCEEDED
    assert trial.reason == "it had finished when it was to be stopped (below the median)"
    assert driver.runner.best.front == [trial]


def test_trial_over_its_time_fails_as_timed_out() -> None:
    driver = Driver(max_trial_duration=10.0)
    trial = driver.running_trial()
    assert driver.runner.next_deadline() == 1010.0
    assert driver.handle(happened.Tick(1009.9)) == []
    assert of_type(driver.handle(happened.Tick(1010.0)), StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.TIMEOUT)
    assert trial.reason == "ran longer than max_trial_duration (10 s)"


def test_user_kills_a_running_and_a_waiting_trial() -> None:
    driver = Driver(Request(cpus=1.0), Totals({"CPU": 1.0}), trial_concurrency=2)
    trial = driver.running_trial()
    driver.propose(x=2)
    waiting = driver.runner.waiting[0]
    driver.handle(happened.TrialKillRequested(driver.now, waiting.trial_id))
    assert waiting.status is TrialStatus.USER_CANCELED
    driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.USER_CANCELED, "killed by the user")


def test_reports_of_an_older_attempt_are_fenced_off() -> None:
    driver = Driver()
    trial = driver.running_trial()
    trial.attempt = 2
    driver.handle(happened.Reported(driver.now, trial.trial_id, 1, "final", 0, "0.5"))
    driver.handle(happened.AttemptEnded(driver.now, trial.trial_id, 1, exit_code=0))
    assert (trial.status, trial.final) == (TrialStatus.RUNNING, None)


def test_results_told_again_count_once() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.5, sequence=0)
    assert driver.report(trial, 0.5, sequence=0) == []
    driver.report(trial, 0.1, "final", sequence=0)
    assert driver.report(trial, 0.1, "final", sequence=0) == []
    driver.end(trial)
    assert trial.reason == ""


def test_lost_agent_is_never_named_again() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(0))
    trial = driver.running_trial()
    driver.end(trial, lost=True)
    (start,) = of_type(driver.propose(x=2), StartTrial)
    assert (trial.agent, start.order.agent) == ("0-0", "0-1")


# --------------------------------------------------------------------------- trials that are run again


def lost_and_retried(
    driver: Driver, *reports: float, checkpoint: int | None = None
) -> tuple[Trial, StartTrial]:
    """A trial whose agent was lost after some reports, and the start of its second attempt."""
    trial = driver.running_trial()
    for number, value in enumerate(reports):
        if number == checkpoint:
            driver.save(trial)
        driver.report(trial, value)
    (start,) = of_type(driver.end(trial, exit_code=None, lost=True, error="its agent is gone"), StartTrial)
    return trial, start


def test_lost_trial_is_run_again_by_another_agent_from_the_beginning() -> None:
    driver = Driver(trial_concurrency=1)
    trial, start = lost_and_retried(driver, 0.1, 0.2)
    order = start.order
    assert (order.attempt, order.agent, order.first_sequence, order.checkpoint) == (2, "0-1", 0, None)
    assert (trial.status, trial.start_time, trial.next_sequence) == (TrialStatus.WAITING, None, 0)
    changes = driver.runner.take_changes()
    assert changes.superseded == [(0, 1, 0)]
    (row,) = changes.attempts
    assert (row.attempt, row.outcome, row.kind, row.reason) == (1, "retried", "INFRA", "its agent is gone")
    assert sent(driver.effects, CommandType.TrialEnd) == []


def test_lost_trial_goes_on_from_its_last_checkpoint() -> None:
    driver = Driver(trial_concurrency=1)
    trial, start = lost_and_retried(driver, 0.1, 0.2, 0.3, checkpoint=2)
    order = start.order
    assert (order.first_sequence, order.checkpoint) == (2, "trials/0/checkpoints/1-2")
    assert driver.runner.take_changes().superseded == [(0, 1, 2)]
    assert trial.next_sequence == 2


def test_trial_whose_checkpoint_is_lost_with_its_node_begins_again() -> None:
    driver = Driver(trial_concurrency=1)
    trial, _ = lost_and_retried(driver, 0.1, 0.2, 0.3, checkpoint=2)
    gone = "FileNotFoundError: its checkpoint is gone: /exp/trials/0/checkpoints/1-2"
    (start,) = of_type(driver.end(trial, exit_code=1, error=gone), StartTrial)
    assert (start.order.checkpoint, start.order.first_sequence) == (None, 0)
    assert trial.failed == {"INFRA": 2}
    changes = driver.runner.take_changes()
    assert changes.superseded == [(0, 1, 2), (0, 2, 0)]
    assert [row.reason for row in changes.attempts] == ["its agent is gone", gone]


def test_dispatcher_hears_of_each_result_once_however_often_it_is_reported() -> None:
    driver = Driver(trial_concurrency=1)
    trial, _ = lost_and_retried(driver, 0.1, 0.2)
    driver.start(trial)
    for value in (0.1, 0.25, 0.3):
        driver.report(trial, value)
    driver.succeed(trial)
    told = [(m["sequence"], m["value"]) for m in sent(driver.effects, CommandType.ReportMetricData)]
    assert told == [(0, "0.1"), (1, "0.2"), (2, "0.3"), (0, "0.5")]
    assert (trial.status, trial.failed) == (TrialStatus.SUCCEEDED, {"INFRA": 1})


def test_late_news_of_a_lost_attempt_change_nothing() -> None:
    driver = Driver(trial_concurrency=1)
    trial, _ = lost_and_retried(driver, 0.1)
    driver.runner.take_changes()
    for late in (
        happened.AttemptStarted(driver.now, trial.trial_id, 1),
        happened.Reported(driver.now, trial.trial_id, 1, "intermediate", 5, "0.5"),
        happened.Reported(driver.now, trial.trial_id, 1, "final", 0, "0.5"),
        happened.CheckpointSaved(driver.now, trial.trial_id, 1, "1-9", 9),
        happened.BadReport(driver.now, trial.trial_id, 1, "rubbish"),
        happened.AttemptEnded(driver.now, trial.trial_id, 1, exit_code=0),
    ):
        assert driver.handle(late) == []
    changes = driver.runner.take_changes()
    assert (changes.trials, changes.metrics, trial.checkpoint) == ({}, [], None)


def test_trial_is_lost_for_good_after_as_many_retries_as_there_may_be() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(by_kind={FailureKind.INFRA: 2}))
    trial = driver.running_trial()
    for _ in range(2):
        driver.end(trial, lost=True)
        assert trial.status is TrialStatus.WAITING
    driver.end(trial, lost=True)
    assert (trial.status, trial.kind, trial.attempt) == (TrialStatus.FAILED, FailureKind.INFRA, 3)
    assert trial.failed == {"INFRA": 3}


@pytest.mark.parametrize(
    ("retries", "ends"),
    [(Retries(), [1, 1]), (Retries(1), [2, 2]), (Retries(by_kind={FailureKind.OOM: 2}), [1, 3])],
)
def test_failures_are_retried_by_their_kind(retries: Retries, ends: list[int]) -> None:
    for error, attempts in zip(["ValueError: no", "MemoryError"], ends, strict=True):
        driver = Driver(trial_concurrency=1, retries=retries)
        trial = driver.running_trial()
        while not trial.status.is_final:
            driver.end(trial, exit_code=1, error=error)
        assert (trial.status, trial.attempt) == (TrialStatus.FAILED, attempts)


def test_condemned_for_its_time_is_run_again_if_asked_for() -> None:
    driver = Driver(trial_concurrency=1, max_trial_duration=10.0, retries=Retries(1))
    trial = driver.running_trial()
    driver.now += 10.0
    driver.handle(happened.Tick(driver.now))
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.verdict, trial.attempt) == (TrialStatus.WAITING, None, 2)
    assert driver.runner.next_deadline() is None
    driver.start(trial)
    assert driver.runner.next_deadline() == driver.now + 10.0


def test_agent_lost_after_the_final_result_leaves_a_success() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, lost=True)
    assert (trial.status, trial.reason) == (
        TrialStatus.SUCCEEDED,
        "its agent was lost after it had reported its final result",
    )


def test_failure_after_the_final_result_is_not_run_again() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(5))
    trial = driver.running_trial()
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    assert len(sent(driver.effects, CommandType.ReportMetricData)) == 1


def test_unusable_final_result_does_not_hide_that_of_the_next_attempt() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(1))
    trial = driver.running_trial()
    driver.report(trial, float("nan"), "final")
    driver.end(trial, exit_code=None, signal=15)
    driver.start(trial)
    driver.succeed(trial, 0.25)
    assert (trial.status, trial.values, trial.reason) == (TrialStatus.SUCCEEDED, (0.25,), "")
    assert [row.attempt for row in driver.runner.take_changes().metrics] == [1, 2]


def test_retried_trial_starts_before_new_ones() -> None:
    driver = Driver(Request(cpus=1.0), Totals({"CPU": 1.0}))
    trial = driver.running_trial()
    driver.propose(x=2)
    (start,) = of_type(driver.end(trial, lost=True), StartTrial)
    assert start.order.trial_id == trial.trial_id


def test_trial_that_was_lost_with_the_manager_is_run_again_when_the_dispatcher_is_back() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    old = driver.runner
    driver.runner = TrialRunner("test", old.limits, Ledger(Totals()))
    driver.runner.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), 0.0)
    assert of_type(driver.end(trial, exit_code=None, lost=True), StartTrial) == []
    assert trial.status is TrialStatus.WAITING
    (start,) = of_type(driver.ready(), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (trial.trial_id, 2)


def test_experiment_that_is_stopped_before_its_dispatcher_is_back_stays_stopping() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    old = driver.runner
    driver.runner = TrialRunner("test", old.limits, Ledger(Totals()))
    driver.runner.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), 0.0)
    driver.handle(happened.StopRequested(driver.now))
    assert driver.ready() == []
    assert driver.runner.status is ExperimentStatus.STOPPING
    assert of_type(driver.end(trial, exit_code=None, signal=15), Finish)
    assert driver.runner.status is ExperimentStatus.STOPPED


def test_trial_whose_agent_was_told_to_leave_is_run_again() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    (start,) = of_type(driver.end(trial, exit_code=None, signal=15, killed=True), StartTrial)
    assert start.order.attempt == 2
    assert trial.failed == {"INFRA": 1}
    driver.start(trial)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, signal=15, killed=True)
    assert trial.status is TrialStatus.SUCCEEDED


def test_nothing_is_run_again_while_the_experiment_stops() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.handle(happened.StopRequested(driver.now, "interrupted"))
    assert of_type(driver.end(trial, lost=True), Finish)
    assert trial.status is TrialStatus.SYS_CANCELED


def test_fail_fast_ends_the_experiment_with_the_first_failure_that_is_not_retried() -> None:
    driver = Driver(trial_concurrency=2, fail_fast=True, retries=Retries(by_kind={FailureKind.INFRA: 1}))
    trial = driver.running_trial()
    driver.propose(x=2)
    other = driver.runner.get_trials()[1]
    driver.end(trial, lost=True)
    assert driver.runner.status is ExperimentStatus.RUNNING
    driver.end(trial, exit_code=1, error="Traceback\nValueError: no")
    driver.end(other, exit_code=None, signal=15)
    assert driver.runner.status is ExperimentStatus.ERROR
    assert driver.runner.reason == "trial 0 failed (fail_fast): ValueError: no"
    assert driver.runner.error == "Traceback\nValueError: no"


# --------------------------------------------------------------------------- pause, resume, exchange


def paused_trial(driver: Driver, checkpoint: bool = True) -> Trial:
    trial = driver.running_trial()
    driver.report(trial, 0.5)
    driver.report(trial, 0.4)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 2"))
    if checkpoint:
        driver.save(trial)
    driver.end(trial, paused=True)
    assert trial.status is TrialStatus.PAUSED
    return trial


def test_pause_is_told_to_the_executor_once_and_frees_the_slot() -> None:
    driver = Driver(trial_concurrency=1)
    trial = paused_trial(driver)
    assert of_type(driver.effects, PauseTrial) == [PauseTrial(trial.trial_id, 1)]
    assert (trial.is_assigned, trial.reason) == (False, "rung 2")
    assert driver.runner.requested == 1  # one more is asked for
    assert sent(driver.effects, CommandType.TrialEnd) == []
    (row,) = driver.runner.take_changes().attempts
    assert (row.outcome, row.reason, row.kind) == ("paused", "rung 2", None)


def test_resumed_trial_goes_on_from_its_checkpoint_with_the_next_number() -> None:
    driver = Driver(trial_concurrency=1)
    trial = paused_trial(driver)
    asked = happened.ResumeRequested(driver.now, trial.trial_id, {"x": 7}, budget=9.0)
    (start,) = of_type(driver.handle(asked), StartTrial)
    order = start.order
    assert (order.attempt, order.first_sequence, order.checkpoint) == (2, 2, "trials/0/checkpoints/1-2")
    assert (order.budget, json.loads(order.record)) == (9.0, {"parameter_id": 0, "parameters": {"x": 7}})
    assert driver.runner.take_changes().superseded == []
    assert trial.failed == {}


def test_resumed_trial_without_a_checkpoint_begins_again() -> None:
    driver = Driver(trial_concurrency=1)
    trial = paused_trial(driver, checkpoint=False)
    (start,) = of_type(driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)), StartTrial)
    assert (start.order.first_sequence, start.order.checkpoint) == (0, None)
    assert driver.runner.take_changes().superseded == [(0, 1, 0)]


def test_resume_takes_a_slot_before_new_trials_and_counts_as_none() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=2)
    trial = paused_trial(driver)
    driver.propose(x=2)
    other = driver.runner.get_trials()[1]
    assert of_type(driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)), StartTrial) == []
    driver.start(other)
    (start,) = of_type(driver.succeed(other), StartTrial)
    assert start.order.trial_id == trial.trial_id
    driver.start(trial)
    assert of_type(driver.succeed(trial), Finish)
    assert [t.status for t in driver.runner.get_trials()] == [TrialStatus.SUCCEEDED] * 2


def test_resume_may_bring_the_checkpoint_of_another_trial() -> None:
    driver = Driver(trial_concurrency=1)
    donor = paused_trial(driver)
    driver.propose(x=2)
    trial = driver.runner.get_trials()[1]
    driver.start(trial)
    driver.report(trial, 0.9)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "exploit"))
    driver.end(trial, paused=True)
    asked = happened.ResumeRequested(driver.now, trial.trial_id, {"x": 3}, donor.trial_id)
    copy, start = of_type(driver.handle(asked), (CopyCheckpoint, StartTrial))
    assert copy == CopyCheckpoint("trials/0/checkpoints/1-2", "trials/1/checkpoints/2-0")
    assert (start.order.checkpoint, start.order.first_sequence) == ("trials/1/checkpoints/2-0", 1)
    assert driver.runner.copies() == [copy]  # until it has started, a killed manager must copy again
    driver.start(trial)
    assert driver.runner.copies() == []


def test_new_trial_may_start_from_the_checkpoint_of_another_and_be_given_a_budget() -> None:
    driver = Driver(trial_concurrency=1)
    donor = paused_trial(driver)
    record = {"parameters": {"x": 2}, "budget": 3, "checkpoint_of": donor.trial_id}
    effects = driver.handle(happened.ParametersArrived(driver.now, 1, json.dumps(record)))
    copy, start = of_type(effects, (CopyCheckpoint, StartTrial))
    assert copy == CopyCheckpoint("trials/0/checkpoints/1-2", "trials/1/checkpoints/1-0")
    order = start.order
    assert (order.checkpoint, order.first_sequence, order.budget) == ("trials/1/checkpoints/1-0", 2, 3.0)


def test_resume_that_comes_before_the_pause_is_done_waits_for_it() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    assert driver.handle(happened.ResumeRequested(driver.now, trial.trial_id, {"x": 5})) == []
    (start,) = of_type(driver.end(trial, paused=True), StartTrial)
    assert json.loads(start.order.record)["parameters"] == {"x": 5}


def test_resume_of_a_running_trial_pauses_it_first() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    asked = happened.ResumeRequested(driver.now, trial.trial_id, {"x": 5})
    assert of_type(driver.handle(asked), PauseTrial) == [PauseTrial(trial.trial_id, 1)]
    assert of_type(driver.end(trial, paused=True), StartTrial)


def test_trial_that_ends_by_itself_before_the_pause_has_ended() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    driver.succeed(trial)
    assert trial.status is TrialStatus.SUCCEEDED
    assert driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)) == []


def test_trial_lost_while_it_pauses_is_paused_at_its_last_checkpoint() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    driver.end(trial, lost=True)
    assert (trial.status, trial.failed) == (TrialStatus.PAUSED, {})


def test_pausing_trial_can_be_killed_and_a_paused_one_ends_at_once() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial()
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    killed = driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "worst of its rung"))
    assert of_type(killed, StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, paused=True)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "worst of its rung")
    driver = Driver(trial_concurrency=1)
    trial = paused_trial(driver)
    effects = driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "worst of its rung"))
    assert (trial.status, len(sent(effects, CommandType.TrialEnd))) == (TrialStatus.EARLY_STOPPED, 1)


def test_experiment_whose_trials_wait_for_a_resume_that_never_comes_is_done() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = paused_trial(driver)
    assert driver.runner.is_stalled
    # The tuner is told once, and may resume one.
    assert sent(driver.handle(happened.DispatcherAnswered(driver.now)), CommandType.RequestTrialJobs) == [0]
    assert of_type(driver.handle(happened.DispatcherAnswered(driver.now)), Finish)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "paused, and never resumed")


def test_stop_ends_paused_trials_too() -> None:
    driver = Driver(trial_concurrency=1)
    trial = paused_trial(driver)
    assert of_type(driver.handle(happened.StopRequested(driver.now, "interrupted")), Finish)
    assert trial.status is TrialStatus.SYS_CANCELED


# --------------------------------------------------------------------------- how experiments end


def test_experiment_is_done_when_its_last_trial_has_ended() -> None:
    driver = Driver(max_trial_number=2)
    driver.ready()
    driver.propose(x=1)
    driver.propose(x=2)
    first, second = driver.runner.get_trials()
    assert driver.runner.status is ExperimentStatus.NO_MORE_TRIAL
    driver.succeed(first, 0.7)
    assert of_type(driver.succeed(second, 0.3), Finish)
    assert driver.runner.status is ExperimentStatus.DONE
    assert driver.runner.best.front == [second]


def test_exhausted_tuner_is_asked_again_after_each_end_and_the_last_no_ends_the_experiment() -> None:
    driver = Driver(trial_concurrency=2)
    driver.ready()
    driver.propose(x=1)
    driver.handle(happened.NoMoreParameters(driver.now))
    assert driver.runner.status is ExperimentStatus.TUNER_NO_MORE_TRIAL
    trial = driver.runner.get_trials()[0]
    driver.start(trial)
    assert sent(driver.succeed(trial), CommandType.RequestTrialJobs) == [2]
    assert of_type(driver.handle(happened.NoMoreParameters(driver.now)), Finish)
    assert driver.runner.status is ExperimentStatus.DONE
    assert driver.runner.reason == "the tuner has nothing more to propose"


def test_no_answers_one_request_and_not_those_sent_after_it() -> None:
    driver = Driver(trial_concurrency=2)
    driver.ready()
    driver.propose(x=1)
    driver.propose(x=2)
    first, second = driver.runner.get_trials()
    assert sent(driver.succeed(first), CommandType.RequestTrialJobs) == [1]
    assert sent(driver.succeed(second), CommandType.RequestTrialJobs) == [1]
    assert (
        driver.handle(happened.NoMoreParameters(driver.now)) == []
    )  # the tuner had not heard of the second result
    assert driver.runner.requested == 1
    driver.propose(x=3)  # now it has
    assert driver.runner.status is ExperimentStatus.RUNNING
    assert len(driver.runner.live) == 1


def test_tuner_that_had_nothing_is_asked_again_about_what_ended_meanwhile() -> None:
    driver = Driver(trial_concurrency=2, max_trial_number=3)
    driver.ready()
    driver.propose(x=1)
    driver.propose(x=2)
    first, second = driver.runner.get_trials()
    assert sent(driver.succeed(first), CommandType.RequestTrialJobs) == [1]
    assert sent(driver.succeed(second), CommandType.RequestTrialJobs) == []  # the limit is asked for already
    no = happened.NoMoreParameters(driver.now)
    assert sent(driver.handle(no), CommandType.RequestTrialJobs) == [1]
    assert of_type(driver.handle(no), Finish)


def test_stop_ends_what_runs_and_keeps_the_results() -> None:
    driver = Driver(trial_concurrency=2)
    trial = driver.running_trial()
    driver.report(trial, 0.4)
    effects = driver.handle(happened.StopRequested(driver.now, "interrupted"))
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert driver.runner.status is ExperimentStatus.STOPPING
    assert driver.propose(x=9) == []
    assert of_type(driver.end(trial, exit_code=None, signal=15), Finish)
    assert driver.runner.status is ExperimentStatus.STOPPED
    assert (trial.status, trial.reason) == (TrialStatus.SYS_CANCELED, "interrupted")


def test_trial_that_ends_well_while_the_experiment_stops_has_succeeded() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.4, "final")
    driver.handle(happened.StopRequested(driver.now))
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "")
    assert driver.runner.best.front == [trial]


def test_time_limit_ends_the_experiment_as_done() -> None:
    driver = Driver(max_experiment_duration=60.0)
    trial = driver.running_trial()
    driver.handle(happened.Tick(1060.0))
    driver.end(trial, exit_code=None, signal=15)
    assert driver.runner.status is ExperimentStatus.DONE
    assert trial.status is TrialStatus.SYS_CANCELED
    assert "max_experiment_duration" in trial.reason


def test_time_of_earlier_managers_counts_against_the_limit() -> None:
    driver = Driver(max_experiment_duration=60.0)
    driver.runner.restore([], {}, run_time=50.0)
    driver.ready()
    assert driver.runner.next_deadline() == 1010.0


def test_equal_failures_from_the_start_end_the_experiment_with_the_traceback() -> None:
    driver = Driver(trial_concurrency=1, max_identical_failures=3)
    driver.ready()
    for number in range(3):
        driver.propose(x=number)
        trial = driver.runner.get_trials()[-1]
        driver.end(trial, exit_code=1, error=f"Traceback ...\nValueError: x = {number}")
    assert driver.runner.status is ExperimentStatus.ERROR
    assert "the first 3 trials failed alike: ValueError: x = 2" in driver.runner.reason
    assert driver.runner.error.startswith("Traceback")


def test_cancelled_trials_do_not_show_that_the_experiment_works() -> None:
    driver = Driver(trial_concurrency=1, max_identical_failures=3)
    driver.ready()
    for number in range(3):
        driver.propose(x=number)
        trial = driver.runner.get_trials()[-1]
        if number == 1:
            driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
            driver.end(trial, exit_code=None, signal=15)
        else:
            driver.end(trial, exit_code=1)
    driver.propose(x=3)
    driver.end(driver.runner.get_trials()[-1], exit_code=1)
    assert driver.runner.status is ExperimentStatus.ERROR
    assert "the first 3 trials failed alike" in driver.runner.reason


def test_failures_after_a_success_do_not_end_the_experiment() -> None:
    driver = Driver(trial_concurrency=1, max_identical_failures=2)
    driver.succeed(driver.running_trial())
    for number in range(4):
        driver.propose(x=number)
        driver.end(driver.runner.get_trials()[-1], exit_code=1)
    assert driver.runner.status is ExperimentStatus.RUNNING


def test_failing_dispatcher_is_restored_once_and_then_ends_the_experiment() -> None:
    driver = Driver()
    trial = driver.running_trial()
    failure = happened.DispatcherFailed(
        driver.now, "the tuner raised ValueError: no", "t.py:3 in f", "Traceback", 7
    )
    assert of_type(driver.handle(failure), RestoreDispatcher)
    assert of_type(driver.handle(failure), StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert driver.runner.status is ExperimentStatus.ERROR
    assert driver.runner.reason == "the tuner raised ValueError: no (t.py:3 in f)"
    assert driver.runner.error == "Traceback"


@pytest.mark.parametrize(
    ("commands", "is_over"),
    [
        ([7, 7], False),
        ([7, 7, 7], True),
        ([7, 3, 5], True),  # it died again while it was told what it knew before
        ([7, 7, 8, 8], False),
        ([7, 9, 8, 9], True),
    ],
)
def test_dispatcher_that_dies_is_restored_while_it_gets_on(commands: list[int], is_over: bool) -> None:
    driver = Driver()
    driver.running_trial()
    for command in commands:
        assert driver.runner.status is ExperimentStatus.RUNNING
        death = happened.DispatcherFailed(driver.now, "it ended with SIGKILL", command=command, died=True)
        effects = driver.handle(death)
    assert (driver.runner.status is ExperimentStatus.STOPPING) is is_over
    if is_over:
        assert f"SIGKILL, 3 times in a row at command {max(commands)}" in driver.runner.reason
        assert "resume" in driver.runner.reason
    else:
        assert of_type(effects, RestoreDispatcher)


def test_silent_agent_gets_nothing_new_until_it_is_heard_of_again() -> None:
    driver = Driver(trial_concurrency=1)
    first = driver.running_trial()
    assert first.agent == "0-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    assert list(troubles_of(driver.runner)) == ["agent 0-0 gives no sign of life: trial 0 runs there"]
    driver.end(first)
    assert list(troubles_of(driver.runner)) == ["agent 0-0 gives no sign of life: it gets nothing new to do"]
    second = driver.running_trial()
    assert second.agent == "1-0"
    driver.handle(happened.AgentSilent(driver.now, "0-0", is_over=True))
    assert list(troubles_of(driver.runner)) == []
    driver.end(second)
    assert driver.running_trial().agent == "0-0"
    assert broken_invariants(driver.runner) == []


def test_name_of_an_agent_that_was_lost_while_it_was_idle_is_not_used_again() -> None:
    driver = Driver(trial_concurrency=1)
    driver.end(driver.running_trial())
    driver.handle(happened.AgentSilent(driver.now, "0-0"))
    for _ in range(2):  # its slot has lost one agent, whoever says it again
        driver.handle(happened.AgentLost(driver.now, "0-0"))
    assert list(troubles_of(driver.runner)) == []
    trial = driver.running_trial()
    assert trial.agent == "0-1"
    driver.handle(happened.AgentLost(driver.now, "0-1"))  # it was lost just before, and has been made anew
    driver.end(trial)
    assert driver.running_trial().agent == "0-1"


def test_two_objectives_give_a_pareto_front() -> None:
    runner = TrialRunner(
        "test",
        Limits(trial_concurrency=4),
        Ledger(Totals()),
        objectives=(Objective("default", "maximize"), Objective("cost", "minimize")),
    )
    driver = Driver()
    driver.runner = runner
    driver.ready()
    for accuracy, cost in [(0.9, 5), (0.8, 1), (0.7, 2), (0.95, 9)]:
        driver.propose(x=accuracy)
        driver.succeed(runner.get_trials()[-1], {"default": accuracy, "cost": cost})
    assert sorted(trial.values for trial in runner.best.front) == [(0.8, 1.0), (0.9, 5.0), (0.95, 9.0)]


# --------------------------------------------------------------------------- the tables


def test_every_status_has_a_row_and_final_ones_have_no_way_out() -> None:
    assert set(TRIAL_MOVES) == set(TrialStatus)
    assert {status for status in TrialStatus if status.is_final} == {
        TrialStatus.SUCCEEDED,
        TrialStatus.FAILED,
        TrialStatus.EARLY_STOPPED,
        TrialStatus.USER_CANCELED,
        TrialStatus.SYS_CANCELED,
    }
    assert set(EXPERIMENT_MOVES) == set(ExperimentStatus)


def test_illegal_move_tells_the_story_of_the_trial() -> None:
    trial = Trial(trial_id="AbCdE", sequence_id=0, parameter_id=0, record="{}", created=0.0)
    trial.move(Cause.STARTED)
    trial.move(Cause.ENDED_WELL)
    with pytest.raises(
        WrongMove, match=r"AbCdE is SUCCEEDED .*WAITING -> RUNNING \(started\); RUNNING -> SUCCEEDED"
    ):
        trial.move(Cause.STARTED)


# --------------------------------------------------------------------------- any order of events

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
        limits = Limits(concurrency, number, 20.0, limit, 3, retries)
        self.begin_recording(TrialRunner("m", limits, Ledger(Totals({"CPU": 2.0})), Request(cpus=1.0)))
        self.now = 0.0
        self.asked = self.answered = 0
        self.started: dict[tuple[str, int], str] = {}
        self.finished = 0
        self.ends_sent: list[str] = []
        self.finals_sent: list[str] = []
        self.told: dict[str, int] = {}

    def begin_recording(self, runner: TrialRunner) -> None:
        """Take up a runner, and keep a copy of how it stands."""
        self.runner, self.begun = runner, copy.deepcopy(runner)
        self.recording: list[str] = []
        self.effects: list[Any] = []

    def check_replay(self) -> None:
        effects = replay(map(json.loads, self.recording), self.begun)
        assert effects == self.effects
        assert [effect.cause for effect in effects] == [effect.cause for effect in self.effects]
        assert (self.begun.trials, self.begun.status) == (self.runner.trials, self.runner.status)
        assert (self.begun.snapshot(), self.begun.reason) == (self.runner.snapshot(), self.runner.reason)

    def teardown(self) -> None:
        """A replay of all recorded events gives the same state and effects."""
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
            # Each result is told once, in order, whatever attempt reports it.
            assert payload["sequence"] >= self.told.get(payload["trial_job_id"], 0)
            self.told[payload["trial_job_id"]] = payload["sequence"] + 1

    @rule()
    def ready(self) -> None:
        self.handle(happened.DispatcherReady(self.now))

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
        self.handle(happened.Reported(self.now, *self.any_attempt(data), kind, sequence, value))

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
        self.handle(happened.CheckpointSaved(self.now, trial_id, attempt, f"{attempt}-1", sequence))

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        self.handle(happened.PauseVerdict(self.now, self.any_attempt(data)[0], "rung"))

    @precondition(lambda self: self.started)
    @rule(data=st.data(), parameters=st.sampled_from([None, {"x": 1}]), exchanged=st.booleans())
    def resume(self, data: st.DataObject, parameters: Any, exchanged: bool) -> None:
        donor = self.any_attempt(data)[0] if exchanged else None
        self.handle(happened.ResumeRequested(self.now, self.any_attempt(data)[0], parameters, donor))

    @rule()
    def dispatcher_has_answered(self) -> None:
        self.handle(happened.DispatcherAnswered(self.now))

    @precondition(lambda self: not self.runner.is_finished())
    @rule()
    def restart(self) -> None:
        """The manager is killed and comes back with what it committed."""
        old = self.runner
        new = TrialRunner("m", old.limits, Ledger(Totals({"CPU": 2.0})), Request(cpus=1.0))
        new.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), old.elapsed(self.now))
        assert [t.trial_id for t in new.waiting] == [t.trial_id for t in old.waiting]
        assert (new.orders(), new.copies(), +new.counts) == (old.orders(), old.copies(), +old.counts)
        if old.status is not ExperimentStatus.STOPPING:  # whoever was stopping does not go on
            self.check_replay()
            self.begin_recording(new)
            self.handle(happened.DispatcherReady(self.now))

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
        self.handle(happened.StartRefused(self.now, *self.any_attempt(data), "busy"))

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
    def tell_the_tuner_more(self, is_space: bool) -> None:
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
        self.handle(happened.DispatcherFailed(self.now, "it failed", command=command, died=died))

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
            assert trial.status is not TrialStatus.PAUSED or trial.resume is None


RunnerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_any_order_of_events = RunnerMachine.TestCase


@given(st.lists(st.sampled_from(["propose", "succeed", "fail", "stop"]), max_size=30))
@settings(deadline=None)
def test_restored_runner_goes_on_like_the_one_it_replaces(moves: list[str]) -> None:
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
    assert (new.created, new.requested, new.orders(), +new.counts) == (
        old.created,
        old.requested,
        old.orders(),
        +old.counts,
    )


def test_every_kind_of_event_has_a_handler_but_the_one_that_ends_the_manager() -> None:
    runner = TrialRunner("exp", Limits(1), Ledger(Totals()))
    assert set(runner.handlers) == set(get_args(happened.Event)) - {happened.ExecutorFailed}
