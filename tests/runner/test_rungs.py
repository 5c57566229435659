"""What the runner does with a trial that spends a budget at which the tuner pauses it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import StartTrial
from pitchpipe.runner.trial import Trial, TrialStatus

from .test_trial_runner import Driver, of_type, sent


def rung_trial(driver: Driver, budget: int = 2) -> Trial:
    """A running trial that the tuner pauses at a budget."""
    driver.ready()
    record = {"parameter_id": 0, "parameters": {"x": 1}, "budget": budget, "pauses_at_budget": True}
    driver.handle(happened.ParametersArrived(driver.now, 0, json.dumps(record)))
    (trial,) = driver.runner.get_trials()
    driver.start(trial)
    return trial


def spend(driver: Driver, trial: Trial, budget: int = 2) -> None:
    while trial.next_sequence < budget:
        driver.report(trial, 0.5)
    driver.save(trial)


def told(driver: Driver, kind: str) -> list[tuple[int, Any]]:
    """The results of one kind that the dispatcher was sent."""
    metrics = sent(driver.effects, CommandType.ReportMetricData)
    return [(metric["sequence"], json.loads(metric["value"])) for metric in metrics if metric["type"] == kind]


def resume(driver: Driver, trial: Trial, **how: Any) -> list[Any]:
    return driver.handle(happened.ResumeRequested(driver.now, trial.trial_id, **how))


def test_attempt_that_pauses_itself_at_its_budget_is_paused_before_the_tuner_says_so() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.end(trial, exit_code=None, paused=True)
    assert (trial.status, trial.reason) == (TrialStatus.PAUSED, "has spent its budget of 2")
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 0"))
    (start,) = of_type(resume(driver, trial, budget=6.0), StartTrial)
    assert (start.order.budget, start.order.checkpoint) == (6.0, "trials/0/checkpoints/1-2")


@pytest.mark.parametrize("is_paused", [False, True])
def test_final_result_at_such_a_budget_pauses_the_trial(is_paused: bool) -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    if is_paused:
        driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 0"))
    driver.succeed(trial, 0.5)
    assert (trial.status, trial.final) == (TrialStatus.PAUSED, None)
    assert told(driver, "PERIODICAL") == [(0, 0.5), (1, 0.5)]
    assert told(driver, "FINAL") == sent(driver.effects, CommandType.TrialEnd) == []
    resume(driver, trial, budget=3.0)
    driver.start(trial)
    driver.report(trial, 0.4)
    driver.succeed(trial, 0.4)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.4,))
    assert told(driver, "FINAL") == [(0, 0.4)]


def test_trial_is_paused_at_each_budget_for_which_the_tuner_says_so() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.succeed(trial)
    resume(driver, trial, budget=4.0, pauses_at_budget=True)
    driver.start(trial)
    spend(driver, trial, 4)
    driver.succeed(trial)
    assert (trial.status, trial.attempt) == (TrialStatus.PAUSED, 2)


def test_lone_final_result_is_the_one_at_which_the_tuner_pauses_the_trial() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver, budget=3)
    driver.succeed(trial, 0.7)
    assert trial.status is TrialStatus.PAUSED
    assert told(driver, "PERIODICAL") == [(2, 0.7)]


@pytest.mark.parametrize(("results", "final"), [(1, 0.5), (2, {"default": 0.5, "done": True})])
def test_trial_that_is_done_has_succeeded(results: int, final: Any) -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial, results)
    driver.succeed(trial, final)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.5,))


def test_trial_whose_agent_is_lost_after_that_result_is_paused() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, lost=True)
    assert trial.status is TrialStatus.PAUSED


def test_trial_that_fails_after_that_result_has_failed() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=1, error="OSError: broken")
    assert trial.status is TrialStatus.FAILED


def test_tuner_can_stop_a_trial_that_spends_its_budget() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.report(trial, 0.5, "final")
    driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "not among the best"))
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "not among the best")


def test_trial_tried_again_by_the_user_ends_at_its_budget() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=2)
    trial = rung_trial(driver)
    driver.end(trial, exit_code=1, error="ValueError")
    assert trial.status is TrialStatus.FAILED
    driver.handle(happened.RetryFailedRequested(driver.now))
    driver.start(trial)
    spend(driver, trial)
    driver.succeed(trial)
    assert trial.status is TrialStatus.SUCCEEDED


def test_trial_completed_by_a_stopper_ends_with_its_result() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=1)
    trial = rung_trial(driver)
    spend(driver, trial)
    driver.handle(happened.CompleteRequested(driver.now, trial.trial_id, "0.5", "good enough"))
    driver.end(trial, signal=15)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.5,))
