"""The rules of an experiment: what it asks the tuner for, and how it ends."""

from __future__ import annotations

import json

import pytest

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish, StartTrial, StopTrial
from pitchpipe.runner.experiment_state import ExperimentStatus, Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus

from .driver import Driver, of_type, paused_trial, running_trial, sent


def test_ready_dispatcher_is_asked_for_as_many_trials_as_may_run() -> None:
    driver = Driver(trial_concurrency=3)
    assert sent(driver.ready(), CommandType.RequestTrialJobs) == [3]
    assert driver.runner.status is ExperimentStatus.RUNNING
    limited = Driver(trial_concurrency=3, max_trial_number=2)
    assert sent(limited.ready(), CommandType.RequestTrialJobs) == [2]


def test_trials_asked_for_count_against_max_trial_number() -> None:
    driver = Driver(trial_concurrency=3, max_trial_number=3)
    driver.ready()
    driver.propose(x=1)
    assert sent(driver.end(driver.runner.get_trials()[0]), CommandType.RequestTrialJobs) == []


def test_end_of_a_trial_is_sent_to_the_dispatcher_and_another_one_requested() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.report(trial, 0.25, "final")
    effects = driver.end(trial)
    (end,) = sent(effects, CommandType.TrialEnd)
    assert (end["trial_job_id"], end["event"]) == (trial.trial_id, "SUCCEEDED")
    assert json.loads(end["hyper_params"])["parameters"] == {"x": 1}
    assert sent(effects, CommandType.RequestTrialJobs) == [1]
    assert trial.status is TrialStatus.SUCCEEDED


def test_failure_after_the_final_result_is_not_run_again() -> None:
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(5))
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    assert len(sent(driver.effects, CommandType.ReportMetricData)) == 1


def test_experiment_that_is_stopped_before_its_dispatcher_is_back_stays_stopping() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.restart()
    driver.handle(happened.StopRequested(driver.now))
    assert driver.ready() == []
    assert driver.runner.status is ExperimentStatus.STOPPING
    assert of_type(driver.end(trial, exit_code=None, signal=15), Finish)
    assert driver.runner.status is ExperimentStatus.STOPPED


def test_nothing_is_run_again_while_the_experiment_stops() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.StopRequested(driver.now, "interrupted"))
    assert of_type(driver.end(trial, lost=True), Finish)
    assert trial.status is TrialStatus.SYS_CANCELED


def test_fail_fast_ends_the_experiment_with_the_first_failure_that_is_not_retried() -> None:
    driver, trial = running_trial(
        trial_concurrency=2, fail_fast=True, retries=Retries(by_kind={FailureKind.INFRA: 1})
    )
    driver.propose(x=2)
    other = driver.runner.get_trials()[1]
    driver.end(trial, lost=True)
    assert driver.runner.status is ExperimentStatus.RUNNING
    driver.end(trial, exit_code=1, error="Traceback\nValueError: no")
    driver.end(other, exit_code=None, signal=15)
    assert driver.runner.status is ExperimentStatus.ERROR
    assert driver.runner.reason == "trial 0 failed (fail_fast): ValueError: no"
    assert driver.runner.error == "Traceback\nValueError: no"


def test_stop_ends_paused_trials_too() -> None:
    driver, trial = paused_trial()
    assert of_type(driver.handle(happened.StopRequested(driver.now, "interrupted")), Finish)
    assert trial.status is TrialStatus.SYS_CANCELED


def test_experiment_is_done_when_its_last_trial_has_ended() -> None:
    driver = Driver(max_trial_number=2)
    first, second = driver.proposed(2)
    assert driver.runner.status is ExperimentStatus.NO_MORE_TRIAL
    driver.succeed(first, 0.7)
    assert of_type(driver.succeed(second, 0.3), Finish)
    assert driver.runner.status is ExperimentStatus.DONE
    assert driver.runner.best.front == [second]


def test_stop_ends_what_runs_and_keeps_the_results() -> None:
    driver, trial = running_trial(trial_concurrency=2)
    driver.report(trial, 0.4)
    effects = driver.handle(happened.StopRequested(driver.now, "interrupted"))
    assert of_type(effects, StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert driver.runner.status is ExperimentStatus.STOPPING
    assert driver.propose(x=9) == []
    assert of_type(driver.end(trial, exit_code=None, signal=15), Finish)
    assert driver.runner.status is ExperimentStatus.STOPPED
    assert (trial.status, trial.reason) == (TrialStatus.SYS_CANCELED, "interrupted")


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


def test_tuner_that_does_not_learn_is_asked_ahead_while_trials_are_short() -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial(learns=False)
    driver.now += 0.05
    assert sent(driver.succeed(trial), CommandType.RequestTrialJobs) == [17]
    for number in range(17):
        driver.propose(x=number)
    asked = []
    for trial in driver.runner.get_trials()[1:10]:
        driver.start(trial)
        effects = driver.succeed(trial)
        assert [effect.order.sequence_id for effect in of_type(effects, StartTrial)] == [
            trial.sequence_id + 1
        ]
        asked += sent(effects, CommandType.RequestTrialJobs)
    assert asked == [8]  # at once, when half of those that waited are left


@pytest.mark.parametrize(("learns", "duration"), [(True, 0.0), (False, 0.2)])
def test_tuner_that_learns_and_one_of_long_trials_are_asked_for_what_can_run(
    learns: bool, duration: float
) -> None:
    driver = Driver(trial_concurrency=1)
    trial = driver.running_trial(learns=learns)
    driver.now += duration
    assert sent(driver.succeed(trial), CommandType.RequestTrialJobs) == [1]


@pytest.mark.parametrize(("most", "asked"), [(5, 1), (17, 1), (30, 13), (100, 17)])
def test_last_sixteen_trials_are_not_asked_for_ahead(most: int, asked: int) -> None:
    """They are left to those who add trials by hand."""
    driver = Driver(trial_concurrency=1, max_trial_number=most)
    effects = driver.succeed(driver.running_trial(learns=False))
    assert sent(effects, CommandType.RequestTrialJobs) == [asked]


def test_tuner_that_had_nothing_more_is_asked_for_what_can_run() -> None:
    driver = Driver(trial_concurrency=1)
    driver.succeed(driver.running_trial(learns=False))
    driver.propose(x=2)
    driver.handle(happened.NoMoreParameters(driver.now))
    last = driver.runner.get_trials()[-1]
    driver.start(last)
    assert sent(driver.succeed(last), CommandType.RequestTrialJobs) == [1]


def test_no_replies_to_one_request_and_not_to_those_sent_after_it() -> None:
    driver = Driver(trial_concurrency=2)
    first, second = driver.proposed(2)
    assert sent(driver.succeed(first), CommandType.RequestTrialJobs) == [1]
    assert sent(driver.succeed(second), CommandType.RequestTrialJobs) == [1]
    assert (
        driver.handle(happened.NoMoreParameters(driver.now)) == []
    )  # the tuner had not received the second result
    assert driver.runner.requested == 1
    driver.propose(x=3)  # now it has
    assert driver.runner.status is ExperimentStatus.RUNNING
    assert len(driver.runner.live) == 1


def test_tuner_that_had_nothing_is_asked_again_about_what_ended_meanwhile() -> None:
    driver = Driver(trial_concurrency=2, max_trial_number=3)
    first, second = driver.proposed(2)
    assert sent(driver.succeed(first), CommandType.RequestTrialJobs) == [1]
    assert sent(driver.succeed(second), CommandType.RequestTrialJobs) == []  # the limit is asked for already
    no = happened.NoMoreParameters(driver.now)
    assert sent(driver.handle(no), CommandType.RequestTrialJobs) == [1]
    assert of_type(driver.handle(no), Finish)
