"""Which trials wait, run and pause, and in which order they start."""

from __future__ import annotations

import json

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import CopyCheckpoint, Finish, PauseTrial, StartTrial
from pitchpipe.runner.experiment_state import Retries
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.runner.trial import Trial, TrialStatus

from .driver import Driver, lost_and_retried, of_type, paused_trial, running_trial, sent


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
    (trial,) = driver.proposed()
    driver.handle(
        happened.StartRefused(driver.now, trial.trial_id, trial.attempt, reason="taken", devices=(0,))
    )
    assert trial.status is TrialStatus.WAITING
    assert not trial.is_assigned
    (start,) = of_type(driver.handle(happened.ResourcesChanged(driver.now)), StartTrial)
    assert (start.order.trial_id, start.order.attempt) == (trial.trial_id, 2)


def test_lost_trial_is_run_again_by_another_agent_from_the_beginning() -> None:
    driver, trial, start = lost_and_retried(0.1, 0.2)
    order = start.order
    assert (order.attempt, order.agent, order.first_sequence, order.checkpoint) == (2, "0-1", 0, None)
    assert (trial.status, trial.start_time, trial.next_sequence) == (TrialStatus.WAITING, None, 0)
    changes = driver.runner.take_changes()
    assert changes.superseded == [(0, 1, 0)]
    (row,) = changes.attempts
    assert (row.attempt, row.outcome, row.kind, row.reason) == (1, "retried", "INFRA", "its agent is gone")
    assert sent(driver.effects, CommandType.TrialEnd) == []


def test_dispatcher_learns_how_a_trial_failed() -> None:
    driver, trial = running_trial()
    (end,) = sent(driver.end(trial, exit_code=1, error="CUDA out of memory"), CommandType.TrialEnd)
    assert end["failure_kind"] == "OOM"


def test_retried_trial_starts_before_new_ones() -> None:
    driver, trial = running_trial(Request(cpus=1.0), Totals(amounts={"CPU": 1.0}))
    driver.propose(x=2)
    (start,) = of_type(driver.end(trial, lost=True), StartTrial)
    assert start.order.trial_id == trial.trial_id


def test_pause_is_sent_to_the_executor_once_and_frees_the_slot() -> None:
    driver, trial = paused_trial()
    assert of_type(driver.effects, PauseTrial) == [PauseTrial(trial.trial_id, 1)]
    assert (trial.is_assigned, trial.reason) == (False, "rung 2")
    assert driver.runner.requested == 1  # one more is asked for
    assert sent(driver.effects, CommandType.TrialEnd) == []
    (row,) = driver.runner.take_changes().attempts
    assert (row.outcome, row.reason, row.kind) == ("paused", "rung 2", None)


def test_resumed_trial_without_a_checkpoint_begins_again() -> None:
    driver, trial = paused_trial(checkpoint=False)
    (start,) = of_type(driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)), StartTrial)
    assert (start.order.first_sequence, start.order.checkpoint) == (0, None)
    assert driver.runner.take_changes().superseded == [(0, 1, 0)]


def test_resume_takes_a_slot_before_new_trials_and_counts_as_none() -> None:
    driver, trial = paused_trial(max_trial_number=2)
    driver.propose(x=2)
    other = driver.runner.get_trials()[1]
    assert of_type(driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)), StartTrial) == []
    driver.start(other)
    (start,) = of_type(driver.succeed(other), StartTrial)
    assert start.order.trial_id == trial.trial_id
    driver.start(trial)
    assert of_type(driver.succeed(trial), Finish)
    assert [t.status for t in driver.runner.get_trials()] == [TrialStatus.SUCCEEDED] * 2


def test_trial_lost_while_it_pauses_is_paused_at_its_last_checkpoint() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    driver.end(trial, lost=True)
    assert (trial.status, trial.failed) == (TrialStatus.PAUSED, {})


def two_pausing() -> tuple[Driver, Trial, Trial]:
    """Return a driver, a trial that is being paused, and a paused one that shall continue from its checkpoint."""
    driver = Driver(max_trial_number=2, retries=Retries(0))
    donor, heir = driver.proposed(2)
    for trial in (donor, heir):
        driver.start(trial)
        driver.report(trial, 0.5)
        driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "end of the interval"))
    driver.end(heir, paused=True)
    request = happened.ResumeRequested(
        driver.now, heir.trial_id, parameters={"x": 2}, checkpoint_of=donor.trial_id
    )
    assert of_type(driver.handle(request), CopyCheckpoint) == []
    assert heir.status is TrialStatus.PAUSED
    return driver, donor, heir


def test_heir_waits_for_the_last_checkpoint_of_its_donor() -> None:
    driver, donor, heir = two_pausing()
    driver.save(donor)
    copies = of_type(driver.end(donor, paused=True), CopyCheckpoint)
    assert copies == [CopyCheckpoint("trials/0/checkpoints/1-1", "trials/1/checkpoints/2-0")]
    assert (donor.status, heir.status, heir.is_assigned) == (TrialStatus.PAUSED, TrialStatus.WAITING, True)


def test_heir_takes_what_there_is_when_its_donor_fails_instead() -> None:
    driver, donor, heir = two_pausing()
    driver.save(donor)
    copies = of_type(driver.end(donor, exit_code=1), CopyCheckpoint)
    assert (donor.status, heir.is_assigned) == (TrialStatus.FAILED, True)
    assert [copy.source for copy in copies] == ["trials/0/checkpoints/1-1"]


def test_heir_still_waits_in_the_runner_of_the_next_manager() -> None:
    driver, donor, heir = two_pausing()
    driver.restart()
    driver.ready()
    assert heir.status is TrialStatus.PAUSED
    driver.end(donor, paused=True)
    assert heir.is_assigned


def test_heir_of_a_stopping_experiment_ends_without_its_donor() -> None:
    driver, donor, heir = two_pausing()
    driver.handle(happened.StopRequested(driver.now))
    driver.end(donor, paused=True)
    assert (heir.status.is_final, donor.status.is_final, driver.runner.is_finished()) == (True, True, True)


def test_new_trial_waits_for_the_last_checkpoint_of_its_donor() -> None:
    driver = Driver(max_trial_number=2)
    (donor,) = driver.proposed()
    driver.start(donor)
    driver.report(donor, 0.5)
    driver.handle(happened.PauseVerdict(driver.now, donor.trial_id, "end of the interval"))
    record = {"parameters": {"x": 2}, "checkpoint_of": donor.trial_id}
    effects = driver.handle(happened.ParametersArrived(driver.now, 1, json.dumps(record)))
    assert of_type(effects, (CopyCheckpoint, StartTrial)) == []
    heir = driver.runner.get_trials()[1]
    driver.save(donor)
    copy, start = of_type(driver.end(donor, paused=True), (CopyCheckpoint, StartTrial))
    assert copy == CopyCheckpoint("trials/0/checkpoints/1-1", "trials/1/checkpoints/1-0")
    assert (start.order.trial_id, start.order.checkpoint) == (heir.trial_id, "trials/1/checkpoints/1-0")
