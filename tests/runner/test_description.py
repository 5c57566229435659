"""The description of an experiment for people."""

from __future__ import annotations

from pitchpipe.runner.description import describe
from pitchpipe.runner.payloads import added_trial

from .driver import Driver


def test_description_says_where_each_trial_is() -> None:
    driver = Driver(trial_concurrency=1, max_trial_number=5)
    assert "no trials" in describe(driver.runner)
    trial = driver.running_trial()
    driver.handle(added_trial({"x": 9}, driver.now))
    waiting = driver.runner.get_trials()[-1]
    assert describe(driver.runner).splitlines() == [
        "experiment test is RUNNING",
        "2 of 5 trials made, 0 asked for",
        "1 of 1 slots taken",
        "1 RUNNING, 1 WAITING",
        f"{trial.trial_id} RUNNING on agent 0-0, attempt 1, 0 results",
        f"{waiting.trial_id} WAITING: all 1 slots (trial_concurrency) are taken",
    ]


def test_description_of_many_trials_stays_short() -> None:
    driver = Driver(trial_concurrency=30)
    driver.ready()
    for number in range(30):
        driver.propose(x=number)
    lines = describe(driver.runner).splitlines()
    assert lines[-1] == "... and 10 more"
    assert len(lines) == 4 + 20 + 1
