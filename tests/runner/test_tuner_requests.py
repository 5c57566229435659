"""Which requests for trials the tuner has yet to reply to."""

from __future__ import annotations

from pitchpipe.protocol import CommandType
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import Finish
from pitchpipe.runner.experiment_status import ExperimentStatus

from .driver import Driver, of_type, sent


def test_no_replies_to_one_request_and_not_to_those_sent_after_it() -> None:
    driver = Driver(trial_concurrency=2)
    driver.ready()
    driver.propose(x=1)
    driver.propose(x=2)
    first, second = driver.runner.get_trials()
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
    driver.ready()
    driver.propose(x=1)
    driver.propose(x=2)
    first, second = driver.runner.get_trials()
    assert sent(driver.succeed(first), CommandType.RequestTrialJobs) == [1]
    assert sent(driver.succeed(second), CommandType.RequestTrialJobs) == []  # the limit is asked for already
    no = happened.NoMoreParameters(driver.now)
    assert sent(driver.handle(no), CommandType.RequestTrialJobs) == [1]
    assert of_type(driver.handle(no), Finish)
