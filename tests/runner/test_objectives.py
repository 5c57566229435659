"""Which trials are the best."""

from __future__ import annotations

from pitchpipe.runner.ledger import Ledger, Totals
from pitchpipe.runner.limits import Limits
from pitchpipe.runner.objectives import Objective
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.runner.trial_runner import TrialRunner

from .driver import Driver


def test_trial_that_fails_after_its_final_result_is_not_the_best() -> None:
    driver = Driver()
    trial = driver.running_trial()
    driver.report(trial, 0.1, "final")
    driver.end(trial, exit_code=1)
    assert trial.status is TrialStatus.FAILED
    assert trial.final == "0.1"
    assert driver.runner.best.front == []


def test_two_objectives_give_a_pareto_front() -> None:
    runner = TrialRunner(
        "test",
        Limits(trial_concurrency=4),
        Ledger(Totals()),
        objectives=(Objective("default", "maximize"), Objective("cost", "minimize")),
    )
    driver = Driver()
    driver.runner = runner
    driver.ready()
    for accuracy, cost in [(0.9, 5), (0.8, 1), (0.7, 2), (0.95, 9)]:
        driver.propose(x=accuracy)
        driver.succeed(runner.get_trials()[-1], {"default": accuracy, "cost": cost})
    assert sorted(trial.values for trial in runner.best.front) == [(0.8, 1.0), (0.9, 5.0), (0.95, 9.0)]
