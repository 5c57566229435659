"""What is written with the next commit."""

from __future__ import annotations

from .driver import Driver


def test_only_what_changed_is_written_again() -> None:
    driver = Driver(trial_concurrency=3)
    driver.ready()
    for number in range(3):
        driver.propose(x=number)
    assert len(driver.runner.take_changes().trials) == 3
    second = driver.runner.get_trials()[1]
    driver.start(second)
    driver.start(second)
    assert list(driver.runner.take_changes().trials) == [second.trial_id]
    assert driver.runner.take_changes().trials == {}
