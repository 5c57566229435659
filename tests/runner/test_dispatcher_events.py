"""What the dispatcher replies, and how often a failed one is restored."""

from __future__ import annotations

import json

import pytest

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish, PauseTrial, RestoreDispatcher, StartTrial, StopTrial
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

from .driver import Driver, of_type, paused_trial, running_trial, sent


def test_kill_verdict_ends_the_trial_early_with_the_reason() -> None:
    driver, trial = running_trial()
    verdict = happened.KillVerdict(driver.now, trial.trial_id, "0.81 below the median 0.86")
    assert of_type(driver.handle(verdict), StopTrial) == [StopTrial(trial.trial_id, 1)]
    assert driver.handle(verdict) == []
    effects = driver.report(trial, 0.9)
    assert sent(effects, CommandType.ReportMetricData) == []
    driver.end(trial, exit_code=None, signal=15)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "0.81 below the median 0.86")


def test_final_result_is_worth_more_than_a_late_verdict() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.5, "final")
    assert driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "below the median")) == []
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "")


def test_resume_that_comes_before_the_pause_waits_for_it() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    assert driver.handle(happened.ResumeRequested(driver.now, trial.trial_id, parameters={"x": 5})) == []
    (start,) = of_type(driver.end(trial, paused=True), StartTrial)
    assert json.loads(start.order.record)["parameters"] == {"x": 5}


def test_resume_of_a_running_trial_pauses_it_first() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    asked = happened.ResumeRequested(driver.now, trial.trial_id, parameters={"x": 5})
    assert of_type(driver.handle(asked), PauseTrial) == [PauseTrial(trial.trial_id, 1)]
    assert of_type(driver.end(trial, paused=True), StartTrial)


def test_pausing_trial_can_be_killed_and_a_paused_one_ends_at_once() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    pause = happened.PauseVerdict(driver.now, trial.trial_id, "rung")
    assert driver.handle(pause) == [PauseTrial(trial.trial_id, 1)]
    killed = driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "worst of its rung"))
    assert of_type(killed, StopTrial) == [StopTrial(trial.trial_id, 1)]
    driver.end(trial, paused=True)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "worst of its rung")
    driver, trial = paused_trial()
    effects = driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "worst of its rung"))
    assert (trial.status, len(sent(effects, CommandType.TrialEnd))) == (TrialStatus.EARLY_STOPPED, 1)


def test_experiment_whose_trials_wait_for_a_resume_that_never_comes_is_done() -> None:
    driver, trial = paused_trial(max_trial_number=1)
    assert driver.runner.is_stalled
    # The tuner is asked once, and may resume one.
    assert sent(driver.handle(happened.DispatcherAnswered(driver.now)), CommandType.RequestTrialJobs) == [0]
    assert of_type(driver.handle(happened.DispatcherAnswered(driver.now)), Finish)
    assert (trial.status, trial.reason) == (TrialStatus.EARLY_STOPPED, "paused, and never resumed")


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        (["", ""], "the tuner has nothing more to propose"),
        (["expected gain 0.5 is below 1", "expected gain 0 is below 1"], "expected gain 0 is below 1"),
    ],
)
def test_exhausted_tuner_is_asked_again_after_each_end_and_the_last_no_ends_the_experiment(
    reasons: list[str], reason: str
) -> None:
    driver = Driver(trial_concurrency=2)
    (trial,) = driver.proposed()
    first, last = [happened.NoMoreParameters(driver.now, why) for why in reasons]
    driver.handle(first)
    assert (driver.runner.status, driver.runner.reason) == (ExperimentStatus.TUNER_NO_MORE_TRIAL, "")
    driver.start(trial)
    assert sent(driver.succeed(trial), CommandType.RequestTrialJobs) == [2]
    assert of_type(driver.handle(last), Finish)
    assert (driver.runner.status, driver.runner.reason) == (ExperimentStatus.DONE, reason)


def test_new_record_makes_one_request_of_all() -> None:
    driver = Driver(trial_concurrency=2)
    driver.ready()
    driver.propose(x=1)
    driver.succeed(driver.runner.get_trials()[0])
    assert driver.runner.requested == 2
    assert driver.handle(happened.RecordBegun(driver.now)) == []
    driver.handle(happened.NoMoreParameters(driver.now))
    assert driver.runner.requested == 0


def test_tuner_is_asked_for_a_resume_also_where_an_older_store_does_not_say_whether_it_was() -> None:
    driver, trial = paused_trial(max_trial_number=1)
    restored = TrialRunner("test", driver.runner.limits, Ledger(Totals()))
    restored.restore(driver.runner.get_trials(), {}, 0.0)
    driver.runner = restored
    driver.ready()
    assert sent(driver.handle(happened.DispatcherAnswered(driver.now)), CommandType.RequestTrialJobs) == [0]
    assert trial.status is TrialStatus.PAUSED


def test_failing_dispatcher_is_restored_once_and_then_ends_the_experiment() -> None:
    driver, trial = running_trial()
    place = {"where": "t.py:3 in f", "traceback": "Traceback", "command": 7}
    failure = happened.DispatcherFailed(driver.now, message="the tuner raised ValueError: no", **place)
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
        ([7, 3, 5], True),  # it died again while it replayed what it knew
        ([7, 7, 8, 8], False),
        ([7, 9, 8, 9], True),
    ],
)
def test_dispatcher_that_dies_is_restored_while_it_makes_progress(commands: list[int], is_over: bool) -> None:
    driver = Driver()
    driver.running_trial()
    for command in commands:
        assert driver.runner.status is ExperimentStatus.RUNNING
        death = happened.DispatcherFailed(
            driver.now, message="it ended with SIGKILL", command=command, died=True
        )
        effects = driver.handle(death)
    assert (driver.runner.status is ExperimentStatus.STOPPING) is is_over
    if is_over:
        assert f"SIGKILL, 3 times in a row at command {max(commands)}" in driver.runner.reason
        assert "resume" in driver.runner.reason
    else:
        assert of_type(effects, RestoreDispatcher)


@pytest.mark.parametrize(("where", "reason"), [("", "it raised"), ("t.py:3", "it raised (t.py:3)")])
def test_reason_of_a_failed_dispatcher_has_the_place_if_it_is_known(where: str, reason: str) -> None:
    assert happened.DispatcherFailed(1.0, message="it raised", where=where).reason == reason
