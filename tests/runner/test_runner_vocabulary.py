"""What others may ask of the runner: a trial of one's own, an early end, another try, where everything stands."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pitchpipe.manager.settings import retries_of
from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.description import describe
from pitchpipe.runner.effects import Finish, PauseTrial, StartTrial, StopTrial
from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.retries import Retries
from pitchpipe.runner.trial import FailureKind, Trial, TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner
from pitchpipe.runner.vocabulary import TUNE_STATUS

from .test_trial_runner import Driver, of_type, sent

RECORD = json.dumps({"parameter_id": None, "parameter_source": "customized", "parameters": {"x": 9}})


def add(driver: Driver) -> list[Any]:
    return driver.handle(happened.TrialAddRequested(driver.now, RECORD))


def test_added_trial_runs_like_any_other_and_has_no_parameter_id() -> None:
    driver = Driver(trial_concurrency=1)
    driver.ready()
    (start,) = of_type(add(driver), StartTrial)
    trial = driver.runner.get_trial(start.order.trial_id)
    assert trial is not None
    assert (trial.parameter_id, trial.status) == (None, TrialStatus.WAITING)
    driver.start(trial)
    (metric,) = sent(driver.report(trial, 0.5, "final"), CommandType.ReportMetricData)
    assert metric["parameter_id"] is None
    driver.end(trial)
    assert trial.status is TrialStatus.SUCCEEDED
    assert driver.runner.best.front == [trial]


def test_added_trial_waits_behind_those_that_were_there() -> None:
    driver = Driver(trial_concurrency=1)
    first = driver.running_trial()
    add(driver)
    added = driver.runner.get_trials()[-1]
    assert driver.runner.why_waiting(added) == "all 1 slots (trial_concurrency) are taken"
    (start,) = of_type(driver.succeed(first), StartTrial)
    assert start.order.trial_id == added.trial_id


def test_trial_added_before_the_dispatcher_is_ready_starts_with_it() -> None:
    driver = Driver(trial_concurrency=1)
    assert add(driver) == []
    effects = driver.ready()
    assert len(of_type(effects, StartTrial)) == 1
    assert sent(effects, CommandType.RequestTrialJobs) == []


def test_no_trial_is_added_over_the_maximum_or_after_the_end() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    driver.ready()
    assert driver.runner.why_not_add() == "max_trial_number (1) trials are made or asked for already"
    assert add(driver) == []
    driver.handle(happened.StopRequested(driver.now))
    assert driver.runner.why_not_add() == "the experiment is STOPPED"
    assert driver.runner.get_trials() == []


def test_stop_trial_ends_it_and_is_nothing_for_one_that_ended() -> None:
    driver = Driver()
    trial = driver.running_trial()
    effects = driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert trial.status is TrialStatus.USER_CANCELED
    assert driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id)) == []


def test_decisions_about_a_trial_are_verdicts() -> None:
    driver = Driver()
    trial = driver.running_trial()
    pause = happened.PauseVerdict(driver.now, trial.trial_id, "its rung is full")
    assert driver.handle(pause) == [PauseTrial(trial.trial_id, 1)]
    stop = happened.KillVerdict(driver.now, trial.trial_id, "too bad")
    assert driver.handle(stop) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "too bad")


def test_every_status_has_a_name_in_tune() -> None:
    assert list(TUNE_STATUS) == list(TrialStatus)
    assert set(TUNE_STATUS.values()) == {"PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR"}
    final = {name for status, name in TUNE_STATUS.items() if status.is_final}
    assert final == {"TERMINATED", "ERROR"}


def test_only_what_changed_is_written_again() -> None:
    driver = Driver(trial_concurrency=3)
    driver.ready()
    for number in range(3):
        driver.propose(x=number)
    assert len(driver.runner.take_changes().trials) == 3
    second = driver.runner.get_trials()[1]
    driver.start(second)
    driver.start(second)
    assert list(driver.runner.take_changes().trials) == [second.trial_id]
    assert driver.runner.take_changes().trials == {}


def complete(driver: Driver, trial_id: str, value: str) -> list[object]:
    return driver.handle(happened.CompleteRequested(driver.now, trial_id, value, "10 results are enough"))


def test_trial_that_did_enough_succeeds_with_its_last_result() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.25)
    effects = complete(driver, trial.trial_id, "0.25")
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    (metric,) = sent(effects, CommandType.ReportMetricData)
    assert (metric["type"], json.loads(metric["value"])) == ("FINAL", 0.25)
    assert complete(driver, trial.trial_id, "0.5") == []  # it was said once
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "10 results are enough")
    assert driver.runner.best.front == [trial]


def test_trial_that_is_being_killed_does_not_become_a_success() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
    assert complete(driver, trial.trial_id, "0.25") == []
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.final) == (TrialStatus.USER_CANCELED, None)


def test_trial_that_did_enough_and_ended_at_nan_has_failed() -> None:
    driver = Driver()
    trial = driver.running_trial()
    complete(driver, trial.trial_id, "NaN")
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.NAN)


def test_stopper_ends_the_experiment_as_done() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.handle(happened.StopRequested(driver.now, "a plateau", "DONE"))
    effects = driver.end(trial, exit_code=None, signal=15)
    assert of_type(effects, Finish)
    assert (driver.runner.status, driver.runner.reason) == (ExperimentStatus.DONE, "a plateau")


def test_debug_string_tells_where_everything_stands() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=5)
    assert "no trials" in describe(driver.runner)
    trial = driver.running_trial()
    add(driver)
    waiting = driver.runner.get_trials()[-1]
    assert describe(driver.runner).splitlines() == [
        "experiment test is RUNNING",
        "2 of 5 trials made, 0 asked for",
        "1 of 1 slots taken",
        "1 RUNNING, 1 WAITING",
        f"{trial.trial_id} RUNNING on agent 0-0, attempt 1, 0 results",
        f"{waiting.trial_id} WAITING: all 1 slots (trial_concurrency) are taken",
    ]


def test_debug_string_of_many_trials_stays_short() -> None:
    driver = Driver(trial_concurrency=30)
    driver.ready()
    for number in range(30):
        driver.propose(x=number)
    lines = describe(driver.runner).splitlines()
    assert lines[-1] == "... and 10 more"
    assert len(lines) == 4 + 20 + 1


# --------------------------------------------------------------------------- checkpoints that cannot be used


def retried_once() -> tuple[Driver, Trial]:
    """A trial that saved a checkpoint after one result, failed, and runs again from there."""
    driver = Driver(trial_concurrency=1, retries=Retries(in_all=5))
    trial = driver.running_trial()
    driver.report(trial, 0.3)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 1, "1-1", 1))
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert (start.order.checkpoint, start.order.first_sequence) == ("trials/0/checkpoints/1-1", 1)
    driver.start(trial)
    return driver, trial


def test_attempt_that_fails_at_its_checkpoint_is_followed_by_one_from_the_start() -> None:
    driver, trial = retried_once()
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert (start.order.checkpoint, start.order.first_sequence) == (None, 0)


def test_checkpoint_that_was_of_use_stays() -> None:
    driver, trial = retried_once()
    driver.report(trial, 0.2)
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert start.order.checkpoint == "trials/0/checkpoints/1-1"
    driver.start(trial)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 3, "3-1", 1))
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert start.order.checkpoint == "trials/0/checkpoints/3-1"


def test_checkpoint_is_not_blamed_for_the_loss_of_an_agent() -> None:
    driver, trial = retried_once()
    (start,) = of_type(driver.end(trial, exit_code=None, lost=True), StartTrial)
    assert start.order.checkpoint == "trials/0/checkpoints/1-1"


# --------------------------------------------------------------------------- trials that failed, once more


def failed_trial(driver: Driver) -> Trial:
    """A trial that saved a checkpoint after two results, reported a third one and failed."""
    trial = driver.running_trial()
    for value in (0.3, 0.2):
        driver.report(trial, value)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 1, "1-1", 2))
    driver.report(trial, 0.1)
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    return trial


def again(driver: Driver, from_checkpoint: bool) -> Trial:
    """The experiment's next manager, which lets failed trials try again."""
    driver.handle(happened.StopRequested(driver.now))
    old = driver.runner
    driver.runner = TrialRunner("test", old.limits, Ledger(Totals()))
    driver.runner.restore(old.get_trials(), json.loads(json.dumps(old.snapshot())), 0.0)
    assert driver.handle(happened.RetryFailedRequested(driver.now, from_checkpoint)) == []
    (trial,) = driver.runner.live.values()
    return trial


@pytest.mark.parametrize(("from_checkpoint", "first"), [(True, 2), (False, 0)])
def test_revived_trial_is_the_same_trial_and_goes_on_or_begins_again(
    from_checkpoint: bool, first: int
) -> None:
    failed = failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    again(driver, from_checkpoint)
    (start,) = of_type(driver.ready(), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (failed.trial_id, 2)
    assert start.order.first_sequence == first
    assert start.order.checkpoint == ("trials/0/checkpoints/1-1" if from_checkpoint else None)
    assert driver.runner.take_changes().superseded == [(0, 1, first)]
    assert driver.runner.created == 1


def test_result_of_a_revived_trial_is_imported() -> None:
    failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    trial = again(driver, True)
    driver.ready()
    driver.start(trial)
    effects = driver.report(trial, 0.05, "final")
    assert sent(effects, CommandType.ImportData) == [[{"parameter": {"x": 1}, "value": "0.05"}]]
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.revivals) == (TrialStatus.SUCCEEDED, 1)
    assert driver.runner.best.front == [trial]
    assert driver.runner.status is ExperimentStatus.DONE


def test_revived_trial_may_fail_again() -> None:
    failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    trial = again(driver, False)
    driver.ready()
    driver.start(trial)
    driver.end(trial, exit_code=1)
    assert (trial.status, trial.attempt) == (TrialStatus.FAILED, 2)
    assert list(driver.runner.failures) == [trial]


def test_experiment_without_failed_trials_is_revived_to_nothing() -> None:
    driver = Driver()
    driver.succeed(driver.running_trial())
    assert driver.handle(happened.RetryFailedRequested(driver.now)) == []


def test_trial_is_tried_again_without_end_if_asked_for() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(in_all=-1), max_identical_failures=0)
    trial = driver.running_trial()
    for attempt in range(1, 30):
        assert trial.attempt == attempt
        driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.WAITING
    assert [retries_of(-1).allow(FailureKind.OOM, {"OOM": 99}), retries_of(0).allow(FailureKind.OOM, {})] == [
        True,
        False,
    ]
