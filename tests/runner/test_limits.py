"""The limits of an experiment: which failed attempts are retried, and for how long it and its trials may run."""

from __future__ import annotations

import pytest

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import StopTrial
from pitchpipe.runner.experiment_state import ExperimentStatus, Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus

from .driver import Driver, of_type, running_trial


def test_trial_fails_after_the_last_allowed_retry() -> None:
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(by_kind={FailureKind.INFRA: 2}))
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


def test_trial_is_retried_without_end_if_retries_say_so() -> None:
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(in_all=-1), max_identical_failures=0)
    for attempt in range(1, 30):
        assert trial.attempt == attempt
        driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.WAITING


def test_trial_over_its_time_fails_as_timed_out() -> None:
    driver, trial = running_trial(max_trial_duration=10.0)
    assert driver.runner.next_deadline() == 1010.0
    assert driver.handle(happened.Tick(1009.9)) == []
    assert of_type(driver.handle(happened.Tick(1010.0)), StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.TIMEOUT)
    assert trial.reason == "ran longer than max_trial_duration (10 s)"


def test_timed_out_trial_is_retried_if_retries_allow_it() -> None:
    driver, trial = running_trial(trial_concurrency=1, max_trial_duration=10.0, retries=Retries(1))
    driver.now += 10.0
    driver.handle(happened.Tick(driver.now))
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.verdict, trial.attempt) == (TrialStatus.WAITING, None, 2)
    assert driver.runner.next_deadline() is None
    driver.start(trial)
    assert driver.runner.next_deadline() == driver.now + 10.0


def test_time_limit_ends_the_experiment_as_done() -> None:
    driver, trial = running_trial(max_experiment_duration=60.0)
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
