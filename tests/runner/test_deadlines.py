"""What happens when a trial or the experiment has run for too long."""

from __future__ import annotations

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import StopTrial
from pitchpipe.runner.experiment_status import ExperimentStatus
from pitchpipe.runner.limits import Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus

from .driver import Driver, of_type


def test_trial_over_its_time_fails_as_timed_out() -> None:
    driver = Driver(max_trial_duration=10.0)
    trial = driver.running_trial()
    assert driver.runner.next_deadline() == 1010.0
    assert driver.handle(happened.Tick(1009.9)) == []
    assert of_type(driver.handle(happened.Tick(1010.0)), StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.TIMEOUT)
    assert trial.reason == "ran longer than max_trial_duration (10 s)"


def test_timed_out_trial_is_retried_if_retries_allow_it() -> None:
    driver = Driver(trial_concurrency=1, max_trial_duration=10.0, retries=Retries(1))
    trial = driver.running_trial()
    driver.now += 10.0
    driver.handle(happened.Tick(driver.now))
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.verdict, trial.attempt) == (TrialStatus.WAITING, None, 2)
    assert driver.runner.next_deadline() is None
    driver.start(trial)
    assert driver.runner.next_deadline() == driver.now + 10.0


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
