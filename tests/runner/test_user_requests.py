"""What users request: a trial of their own, an early end, another try."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pitchpipe.protocol import AddedSource, CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish, StartTrial, StopTrial
from pitchpipe.runner.events import added_trial
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.runner.trial import FailureKind, Trial, TrialStatus

from .driver import Driver, of_type, running_trial, sent


def add(driver: Driver) -> list[Any]:
    return driver.handle(added_trial({"x": 9}, driver.now))


def complete(driver: Driver, trial_id: str, value: str) -> list[object]:
    return driver.handle(happened.CompleteRequested(driver.now, trial_id, value, "10 results are enough"))


def failed_trial(driver: Driver) -> Trial:
    """Return a trial that saved a checkpoint after two results, reported a third one and failed."""
    trial = driver.running_trial()
    for value in (0.3, 0.2):
        driver.report(trial, value)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 1, name="1-1", sequence=2))
    driver.report(trial, 0.1)
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    return trial


def retried(driver: Driver, from_checkpoint: bool) -> Trial:
    """Restart the manager and have it retry the failed trial; return that trial."""
    driver.handle(happened.StopRequested(driver.now))
    driver.restart()
    assert driver.handle(happened.RetryFailedRequested(driver.now, from_checkpoint)) == []
    (trial,) = driver.runner.live.values()
    return trial


def test_user_kills_a_running_and_a_waiting_trial() -> None:
    driver, trial = running_trial(Request(cpus=1.0), Totals(amounts={"CPU": 1.0}), trial_concurrency=2)
    driver.propose(x=2)
    waiting = driver.runner.waiting[0]
    driver.handle(happened.TrialKillRequested(driver.now, waiting.trial_id))
    assert waiting.status is TrialStatus.USER_CANCELED
    kill = happened.TrialKillRequested(driver.now, trial.trial_id)
    assert of_type(driver.handle(kill), StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.USER_CANCELED, "killed by the user")
    assert driver.handle(kill) == []


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


def test_result_of_a_starting_point_is_imported_and_marked_so_for_the_assessor() -> None:
    driver = Driver(trial_concurrency=1)
    driver.ready()
    driver.handle(added_trial({"x": 7}, driver.now, source="defaults"))
    (trial,) = driver.runner.get_trials()
    driver.start(trial)
    driver.report(trial, 0.4)
    effects = driver.report(trial, 0.5, "final")
    assert sent(effects, CommandType.ImportData) == [[{"parameter": {"x": 7}, "value": "0.5"}]]
    (metric,) = sent(effects, CommandType.ReportMetricData)
    assert (metric["type"], metric["imported"], metric["trial_job_id"]) == ("FINAL", True, trial.trial_id)


@pytest.mark.parametrize(
    ("source", "is_spared"),
    [("defaults", True), ("initial", None), ("warm_start", None), ("customized", None)],
)
def test_intermediate_results_of_the_defaults_are_marked_for_the_assessor(
    source: AddedSource, is_spared: bool | None
) -> None:
    driver = Driver(trial_concurrency=1)
    driver.ready()
    driver.handle(added_trial({"x": 7, "note": '"defaults"'}, driver.now, source=source))
    (trial,) = driver.runner.get_trials()
    driver.start(trial)
    (metric,) = sent(driver.report(trial, 0.4), CommandType.ReportMetricData)
    assert (metric["type"], metric.get("spared")) == ("PERIODICAL", is_spared)
    (final,) = sent(driver.report(trial, 0.5, "final"), CommandType.ReportMetricData)
    assert "spared" not in final


def test_added_trial_waits_after_those_that_were_there() -> None:
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


def test_trial_over_the_maximum_runs_before_others_once_it_is_raised() -> None:
    driver = Driver(trial_concurrency=2, max_trial_number=1)
    add(driver)
    add(driver)
    effects = driver.ready()
    assert len(of_type(effects, StartTrial)) == 1
    effects = driver.handle(happened.LimitsChanged(driver.now, trial_concurrency=3, max_trial_number=3))
    assert len(of_type(effects, StartTrial)) == 1
    assert sent(effects, CommandType.RequestTrialJobs) == [1]


def test_trial_that_did_enough_succeeds_with_its_last_result() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.25)
    effects = complete(driver, trial.trial_id, "0.25")
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    (metric,) = sent(effects, CommandType.ReportMetricData)
    assert (metric["type"], json.loads(metric["value"])) == ("FINAL", 0.25)
    assert complete(driver, trial.trial_id, "0.5") == []  # the first request counts
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "10 results are enough")
    assert driver.runner.best.front == [trial]


def test_trial_that_is_being_killed_does_not_become_a_success() -> None:
    driver, trial = running_trial()
    driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
    assert complete(driver, trial.trial_id, "0.25") == []
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.final) == (TrialStatus.USER_CANCELED, None)


def test_trial_that_did_enough_and_ended_at_nan_has_failed() -> None:
    driver, trial = running_trial()
    complete(driver, trial.trial_id, "NaN")
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.NAN)


def test_stopper_ends_the_experiment_as_done() -> None:
    driver, trial = running_trial()
    driver.handle(happened.StopRequested(driver.now, "a plateau", "DONE"))
    effects = driver.end(trial, exit_code=None, signal=15)
    assert of_type(effects, Finish)
    assert (driver.runner.status, driver.runner.reason) == (ExperimentStatus.DONE, "a plateau")


@pytest.mark.parametrize(("from_checkpoint", "first"), [(True, 2), (False, 0)])
def test_retried_trial_is_the_same_trial_and_continues_or_begins_again(
    from_checkpoint: bool, first: int
) -> None:
    failed = failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    retried(driver, from_checkpoint)
    (start,) = of_type(driver.ready(), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (failed.trial_id, 2)
    assert start.order.first_sequence == first
    assert start.order.checkpoint == ("trials/0/checkpoints/1-1" if from_checkpoint else None)
    assert driver.runner.take_changes().superseded == [(0, 1, first)]
    assert driver.runner.created == 1


def test_result_of_a_trial_that_the_user_retried_is_imported() -> None:
    failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    trial = retried(driver, True)
    driver.ready()
    driver.start(trial)
    effects = driver.report(trial, 0.05, "final")
    assert sent(effects, CommandType.ImportData) == [[{"parameter": {"x": 1}, "value": "0.05"}]]
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial)
    assert (trial.status, trial.user_retries) == (TrialStatus.SUCCEEDED, 1)
    assert driver.runner.best.front == [trial]
    assert driver.runner.status is ExperimentStatus.DONE


def test_trial_that_the_user_retried_may_fail_again() -> None:
    failed_trial(driver := Driver(trial_concurrency=1, max_trial_number=1))
    trial = retried(driver, False)
    driver.ready()
    driver.start(trial)
    driver.end(trial, exit_code=1)
    assert (trial.status, trial.attempt) == (TrialStatus.FAILED, 2)
    assert list(driver.runner.failures) == [trial]


def stopped_with_live_trials() -> Driver:
    """Return a stopped experiment of five trials: one has succeeded, two ran, two waited."""
    driver = Driver(trial_concurrency=2, max_trial_number=5)
    driver.succeed(driver.running_trial())
    for number in range(4):
        driver.propose(x=number)
    second, third = list(driver.runner.live.values())[:2]
    driver.start(second)
    driver.save(second)
    driver.report(second, 0.1)
    driver.handle(happened.StopRequested(driver.now))
    for trial in (second, third):
        driver.end(trial, exit_code=None, signal=15)
    driver.restart()
    return driver


def test_trials_that_the_end_cancelled_run_again_in_their_order() -> None:
    driver = stopped_with_live_trials()
    assert driver.runner.counts[TrialStatus.SYS_CANCELED] == 4
    driver.handle(happened.RetryCancelledRequested(driver.now))
    assert [trial.sequence_id for trial in driver.runner.waiting] == [1, 2, 3, 4]
    driver.ready()
    for trial in list(driver.runner.live.values()):
        driver.succeed(trial)
    assert driver.runner.status is ExperimentStatus.DONE
    assert driver.runner.counts[TrialStatus.SUCCEEDED] == driver.runner.created == 5
    assert len(sent(driver.effects, CommandType.ImportData)) == 4  # the tuner takes them for ended


@pytest.mark.parametrize("how", [{"lost": True}, {"exit_code": None, "signal": 15}], ids=["lost", "killed"])
def test_trial_runs_again_though_the_kill_of_the_manager_came_before_its_cancelled_end(
    how: dict[str, Any],
) -> None:
    driver, trial = running_trial(trial_concurrency=1, max_trial_number=1)
    driver.save(trial)
    driver.handle(happened.StopRequested(driver.now))
    driver.restart()
    driver.ready()
    (restored,) = driver.runner.live.values()
    driver.end(restored, **how)
    assert (restored.status, restored.attempt) == (TrialStatus.WAITING, 2)
    assert restored.checkpoint is not None
    driver.start(restored)
    driver.succeed(restored)
    assert driver.runner.status is ExperimentStatus.DONE
    assert driver.runner.counts[TrialStatus.SUCCEEDED] == 1


def test_cancelled_trial_with_a_budget_stays_cancelled() -> None:
    driver = stopped_with_live_trials()
    for trial in driver.runner.trials.values():
        trial.budget = 3.0
    assert driver.handle(happened.RetryCancelledRequested(driver.now)) == []
    assert driver.runner.counts[TrialStatus.SYS_CANCELED] == 4


def test_retry_of_an_experiment_without_failed_trials_changes_nothing() -> None:
    driver = Driver()
    driver.succeed(driver.running_trial())
    assert driver.handle(happened.RetryFailedRequested(driver.now)) == []


def test_trial_that_has_room_waits_only_for_the_start() -> None:
    driver = Driver()
    add(driver)
    (added,) = driver.runner.waiting
    assert driver.runner.why_waiting(added) == "it starts in a moment"
