"""What the dispatcher replies: parameters, verdicts, resumes, and nothing more."""

from __future__ import annotations

import json

import pytest

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish, PauseTrial, StartTrial, StopTrial
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
