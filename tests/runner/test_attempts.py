"""From one attempt to the next: checkpoints, budgets, and what a resume brings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pitchpipe.protocol import CommandType, schedule_of
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import CopyCheckpoint, StartTrial
from pitchpipe.runner.experiment_state import Retries
from pitchpipe.runner.trial import Trial, TrialStatus

from .driver import Driver, lost_and_retried, of_type, paused_trial, running_trial, sent


def rung_trial(budget: int = 2, max_trial_number: int = 1) -> tuple[Driver, Trial]:
    """Return a driver and its running trial, which the tuner pauses at a budget."""
    driver = Driver(trial_concurrency=1, max_trial_number=max_trial_number)
    driver.ready()
    record = {"parameter_id": 0, "parameters": {"x": 1}, "budget": budget, "pauses_at_budget": True}
    driver.handle(happened.ParametersArrived(driver.now, 0, json.dumps(record)))
    (trial,) = driver.runner.get_trials()
    driver.start(trial)
    return driver, trial


def spend(driver: Driver, trial: Trial, budget: int = 2) -> None:
    while trial.next_sequence < budget:
        driver.report(trial, 0.5)
    driver.save(trial)


def received(driver: Driver, kind: str) -> list[tuple[int, Any]]:
    """Return the results of one kind that the dispatcher received."""
    metrics = sent(driver.effects, CommandType.ReportMetricData)
    return [(metric["sequence"], json.loads(metric["value"])) for metric in metrics if metric["type"] == kind]


def resume(driver: Driver, trial: Trial, **how: Any) -> list[Any]:
    return driver.handle(happened.ResumeRequested(driver.now, trial.trial_id, **how))


def retried_once(**limits: Any) -> tuple[Driver, Trial]:
    """Return a trial that saved a checkpoint after one result, failed, and runs again from there."""
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(in_all=5), **limits)
    driver.report(trial, 0.3)
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 1, name="1-1", sequence=1))
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert (start.order.checkpoint, start.order.first_sequence) == ("trials/0/checkpoints/1-1", 1)
    driver.start(trial)
    return driver, trial


def test_lost_trial_continues_from_its_last_checkpoint() -> None:
    driver, trial, start = lost_and_retried(0.1, 0.2, 0.3, checkpoint=2)
    order = start.order
    assert (order.first_sequence, order.checkpoint) == (2, "trials/0/checkpoints/1-2")
    assert driver.runner.take_changes().superseded == [(0, 1, 2)]
    assert trial.next_sequence == 2


def test_trial_whose_checkpoint_is_lost_with_its_node_begins_again() -> None:
    driver, trial, _ = lost_and_retried(0.1, 0.2, 0.3, checkpoint=2)
    gone = "FileNotFoundError: its checkpoint is gone: /exp/trials/0/checkpoints/1-2"
    (start,) = of_type(driver.end(trial, exit_code=1, error=gone), StartTrial)
    assert (start.order.checkpoint, start.order.first_sequence) == (None, 0)
    assert trial.failed == {"INFRA": 2}
    changes = driver.runner.take_changes()
    assert changes.superseded == [(0, 1, 2), (0, 2, 0)]
    assert [row.reason for row in changes.attempts] == ["its agent is gone", gone]


def test_resumed_trial_continues_from_its_checkpoint_with_the_next_number() -> None:
    driver, trial = paused_trial()
    asked = happened.ResumeRequested(driver.now, trial.trial_id, parameters={"x": 7}, budget=9.0)
    (start,) = of_type(driver.handle(asked), StartTrial)
    order = start.order
    assert (order.attempt, order.first_sequence, order.checkpoint) == (2, 2, "trials/0/checkpoints/1-2")
    steps = [{"first": 0, "parameters": {"x": 1}}, {"first": 2, "parameters": {"x": 7}}]
    record = {"parameter_id": 0, "parameters": {"x": 7}, "schedule": steps}
    assert (order.budget, json.loads(order.record)) == (9.0, record)
    assert driver.runner.take_changes().superseded == []
    assert trial.failed == {}


def test_resume_may_bring_the_checkpoint_of_another_trial() -> None:
    driver, donor = paused_trial()
    driver.propose(x=2)
    trial = driver.runner.get_trials()[1]
    driver.start(trial)
    driver.report(trial, 0.9)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "exploit"))
    driver.end(trial, paused=True)
    asked = happened.ResumeRequested(
        driver.now, trial.trial_id, parameters={"x": 3}, checkpoint_of=donor.trial_id
    )
    copy, start = of_type(driver.handle(asked), (CopyCheckpoint, StartTrial))
    assert copy == CopyCheckpoint("trials/0/checkpoints/1-2", "trials/1/checkpoints/2-0")
    assert (start.order.checkpoint, start.order.first_sequence) == ("trials/1/checkpoints/2-0", 1)
    assert driver.runner.copies() == [copy]  # until it has started, a killed manager must copy again
    driver.start(trial)
    assert driver.runner.copies() == []


def test_new_trial_may_start_from_the_checkpoint_of_another_and_be_given_a_budget() -> None:
    driver, donor = paused_trial()
    record = {"parameters": {"x": 2}, "budget": 3, "checkpoint_of": donor.trial_id}
    effects = driver.handle(happened.ParametersArrived(driver.now, 1, json.dumps(record)))
    copy, start = of_type(effects, (CopyCheckpoint, StartTrial))
    assert copy == CopyCheckpoint("trials/0/checkpoints/1-2", "trials/1/checkpoints/1-0")
    order = start.order
    assert (order.checkpoint, order.first_sequence, order.budget) == ("trials/1/checkpoints/1-0", 2, 3.0)


def a_copy(x: int, of: int, first: int, at: int, steps: int) -> dict[str, Any]:
    """Return a step that begins with a copied checkpoint."""
    return {
        "first": first,
        "parameters": {"x": x},
        "copied_from": of,
        "copied_at": at,
        "copied_steps": steps,
    }


def heir_of(driver: Driver, donor: Trial) -> Trial:
    """Return a trial that made one result, and runs on with the checkpoint of another and x=3."""
    driver.propose(x=2)
    trial = driver.runner.get_trials()[-1]
    driver.start(trial)
    driver.report(trial, 0.9)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "exploit"))
    driver.end(trial, paused=True)
    resume(driver, trial, parameters={"x": 3}, checkpoint_of=donor.trial_id)
    driver.start(trial)
    return trial


def test_record_says_whose_checkpoint_a_trial_copied_and_after_which_results_of_both() -> None:
    driver, donor = paused_trial()
    trial = heir_of(driver, donor)
    assert schedule_of(trial.record) == [{"first": 0, "parameters": {"x": 2}}, a_copy(3, 0, 1, 2, 1)]
    assert schedule_of(donor.record) == []


def test_copy_of_a_copy_names_the_steps_that_the_other_trial_had() -> None:
    driver, donor = paused_trial()
    heir = heir_of(driver, donor)
    driver.report(heir, 0.4)
    driver.handle(happened.PauseVerdict(driver.now, heir.trial_id, "rung"))
    driver.save(heir)
    driver.end(heir, paused=True)
    last = heir_of(driver, heir)
    assert schedule_of(last.record)[1] == a_copy(3, 1, 1, 2, 2)


def test_new_trial_from_the_checkpoint_of_another_has_no_step_before() -> None:
    driver, donor = paused_trial()
    record = {"parameters": {"x": 2}, "budget": 3, "checkpoint_of": donor.trial_id}
    driver.handle(happened.ParametersArrived(driver.now, 1, json.dumps(record)))
    assert schedule_of(driver.runner.get_trials()[1].record) == [a_copy(2, 0, 2, 2, 1)]


def test_resume_that_changes_no_parameters_adds_no_step() -> None:
    driver, trial = paused_trial()
    resume(driver, trial, budget=9.0)
    assert "schedule" not in json.loads(trial.record)
    driver, trial = paused_trial()
    resume(driver, trial, parameters={"x": 1}, budget=9.0)
    assert "schedule" not in json.loads(trial.record)


def test_trial_without_a_checkpoint_begins_again_with_its_new_parameters() -> None:
    driver, trial = paused_trial(checkpoint=False)
    (start,) = of_type(resume(driver, trial, parameters={"x": 7}), StartTrial)
    assert start.order.first_sequence == 0
    assert schedule_of(trial.record)[-1] == {"first": 0, "parameters": {"x": 7}}


def test_trial_whose_copied_checkpoint_is_gone_begins_again_and_the_steps_before_stay() -> None:
    driver, donor = paused_trial()
    trial = heir_of(driver, donor)
    gone = "FileNotFoundError: its checkpoint is gone: /exp/trials/1/checkpoints/2-0"
    driver.end(trial, exit_code=None, lost=True, error=gone)
    assert schedule_of(trial.record)[1:] == [a_copy(3, 0, 1, 2, 1), {"first": 0, "parameters": {"x": 3}}]


def test_lone_final_results_count_by_their_budget() -> None:
    driver, trial = rung_trial(budget=3)
    driver.save(trial)
    driver.succeed(trial, 0.7)
    resume(driver, trial, parameters={"x": 7}, budget=6.0)
    assert schedule_of(trial.record)[-1] == {"first": 3, "parameters": {"x": 7}}


def test_attempt_that_pauses_itself_at_its_budget_is_paused_before_the_tuner_says_so() -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    driver.end(trial, exit_code=None, paused=True)
    assert (trial.status, trial.reason) == (TrialStatus.PAUSED, "has spent its budget of 2")
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 0"))
    (start,) = of_type(resume(driver, trial, budget=6.0), StartTrial)
    assert (start.order.budget, start.order.checkpoint) == (6.0, "trials/0/checkpoints/1-2")


@pytest.mark.parametrize("is_paused", [False, True])
def test_final_result_at_such_a_budget_pauses_the_trial(is_paused: bool) -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    if is_paused:
        driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 0"))
    driver.succeed(trial, 0.5)
    assert (trial.status, trial.final) == (TrialStatus.PAUSED, None)
    assert received(driver, "PERIODICAL") == [(0, 0.5), (1, 0.5)]
    assert received(driver, "FINAL") == sent(driver.effects, CommandType.TrialEnd) == []
    resume(driver, trial, budget=3.0)
    driver.start(trial)
    driver.report(trial, 0.4)
    driver.succeed(trial, 0.4)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.4,))
    assert received(driver, "FINAL") == [(0, 0.4)]


def test_trial_is_paused_at_each_budget_for_which_the_tuner_says_so() -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    driver.succeed(trial)
    resume(driver, trial, budget=4.0, pauses_at_budget=True)
    driver.start(trial)
    spend(driver, trial, 4)
    driver.succeed(trial)
    assert (trial.status, trial.attempt) == (TrialStatus.PAUSED, 2)


def test_lone_final_result_is_the_one_at_which_the_tuner_pauses_the_trial() -> None:
    driver, trial = rung_trial(budget=3)
    driver.succeed(trial, 0.7)
    assert trial.status is TrialStatus.PAUSED
    assert received(driver, "PERIODICAL") == [(2, 0.7)]


@pytest.mark.parametrize(("results", "final"), [(1, 0.5), (2, {"default": 0.5, "done": True})])
def test_trial_that_is_done_has_succeeded(results: int, final: Any) -> None:
    driver, trial = rung_trial()
    spend(driver, trial, results)
    driver.succeed(trial, final)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.5,))


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"exit_code": None, "lost": True}, TrialStatus.PAUSED),
        ({"exit_code": 1, "error": "OSError: broken"}, TrialStatus.FAILED),
    ],
)
def test_trial_whose_agent_is_lost_after_that_result_is_paused_and_one_that_fails_has_failed(
    how: dict[str, Any], status: TrialStatus
) -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    driver.report(trial, 0.5, "final")
    driver.end(trial, **how)
    assert trial.status is status


def test_tuner_can_stop_a_trial_that_spends_its_budget() -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    driver.report(trial, 0.5, "final")
    driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "not among the best"))
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "not among the best")


def test_trial_that_the_user_retried_ends_at_its_budget() -> None:
    driver, trial = rung_trial(max_trial_number=2)
    driver.end(trial, exit_code=1, error="ValueError")
    assert trial.status is TrialStatus.FAILED
    driver.handle(happened.RetryFailedRequested(driver.now))
    driver.start(trial)
    spend(driver, trial)
    driver.succeed(trial)
    assert trial.status is TrialStatus.SUCCEEDED


def test_trial_completed_by_a_stopper_ends_with_its_result() -> None:
    driver, trial = rung_trial()
    spend(driver, trial)
    driver.handle(happened.CompleteRequested(driver.now, trial.trial_id, "0.5", "good enough"))
    driver.end(trial, signal=15)
    assert (trial.status, trial.values) == (TrialStatus.SUCCEEDED, (0.5,))


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
    driver.handle(happened.CheckpointSaved(driver.now, trial.trial_id, 3, name="3-1", sequence=1))
    (start,) = of_type(driver.end(trial, exit_code=1), StartTrial)
    assert start.order.checkpoint == "trials/0/checkpoints/3-1"


@pytest.mark.parametrize(
    "end",
    [{"exit_code": None, "lost": True}, {"exit_code": 1, "error": "MemoryError"}, {"signal": 9}],
    ids=["lost", "memory", "killed"],
)
def test_checkpoint_is_not_blamed_for_what_comes_from_outside(end: dict[str, Any]) -> None:
    driver, trial = retried_once()
    (start,) = of_type(driver.end(trial, **end), StartTrial)
    assert start.order.checkpoint == "trials/0/checkpoints/1-1"


def test_checkpoint_is_not_blamed_for_a_trial_that_ran_too_long() -> None:
    driver, trial = retried_once(max_trial_duration=10.0)
    driver.now += 10.0
    driver.handle(happened.Tick(driver.now))
    (start,) = of_type(driver.end(trial, exit_code=None, signal=15), StartTrial)
    assert (trial.failed["TIMEOUT"], start.order.checkpoint) == (1, "trials/0/checkpoints/1-1")


def test_older_checkpoint_that_is_reported_again_replaces_none() -> None:
    driver, trial = running_trial()
    for sequence in (1, 2, 1):
        driver.report(trial, 0.3)
        key = driver.now, trial.trial_id, 1
        driver.handle(happened.CheckpointSaved(*key, name=f"1-{sequence}", sequence=sequence))
    assert (trial.checkpoint, trial.checkpoint_sequence) == ("trials/0/checkpoints/1-2", 2)
