"""How often a failed dispatcher is restored."""

from __future__ import annotations

import pytest

from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import RestoreDispatcher, StopTrial
from pitchpipe.runner.experiment_state import ExperimentStatus

from .driver import Driver, of_type, running_trial


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
