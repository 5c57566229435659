"""What an experiment waits for, and for how long."""

from __future__ import annotations

import pytest

from pitchpipe.runner import events as happened
from pitchpipe.runner.waits import Wait

from .driver import Driver, paused_trial, running_trial


def test_running_trial_is_bounded_by_its_duration() -> None:
    driver, _ = running_trial(trial_concurrency=1, max_trial_duration=60.0)
    driver.propose(x=2)
    running, waiting = driver.runner.waits()
    assert running == Wait(
        what="trial 0 to end", since=1000.0, longest=60.0, then="it is ended (max_trial_duration)"
    )
    assert (waiting.what.split(":")[0], waiting.since, waiting.longest) == ("trial 1 to start", 1000.0, None)


def test_trial_that_pauses_waits_for_its_checkpoint_and_then_for_the_tuner() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung 2"))
    assert [(wait.what, wait.then) for wait in driver.runner.waits()] == [
        ("trial 0 to save a checkpoint and end", "it reports its next result")
    ]
    driver, _ = paused_trial()
    assert [wait.then for wait in driver.runner.waits()] == ["the tuner continues or ends it"]


@pytest.mark.parametrize("count", [100, 130])
def test_many_trials_are_counted(count: int) -> None:
    driver = Driver(trial_concurrency=1)
    driver.proposed(count)
    waits = driver.runner.waits()
    assert len(waits) == min(count, 101)
    assert waits[-1].what.startswith("30 more trials") == (count > 100)


def test_tuner_without_proposals_waits_for_results() -> None:
    driver, trial = running_trial(trial_concurrency=2)
    driver.handle(happened.NoMoreParameters(driver.now))
    assert "the tuner, which proposes no more trials for now" in [wait.what for wait in driver.runner.waits()]
    driver.end(trial)
