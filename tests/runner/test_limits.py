"""The limits of an experiment: which failed attempts are retried."""

from __future__ import annotations

import pytest

from pitchpipe.runner.limits import Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus

from .driver import Driver


def test_trial_fails_after_the_last_allowed_retry() -> None:
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


def test_trial_is_retried_without_end_if_retries_say_so() -> None:
    driver = Driver(trial_concurrency=1, retries=Retries(in_all=-1), max_identical_failures=0)
    trial = driver.running_trial()
    for attempt in range(1, 30):
        assert trial.attempt == attempt
        driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.WAITING
