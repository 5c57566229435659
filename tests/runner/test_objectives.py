"""Which trials are the best."""

from __future__ import annotations

import pytest

from pitchpipe.protocol import Objective
from pitchpipe.runner.trial import Trial, TrialStatus

from .driver import Driver, running_trial


def test_trial_that_fails_after_its_final_result_is_not_the_best() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.1, "final")
    driver.end(trial, exit_code=1)
    assert (trial.status, trial.final) == (TrialStatus.FAILED, "0.1")
    assert driver.runner.best.front == []
    driver.restart()
    assert driver.runner.best.front == []


def test_of_equal_results_the_earlier_trial_is_the_best() -> None:
    driver = Driver()
    first, second = driver.running_trial(), driver.running_trial()
    for trial in (first, second):
        driver.succeed(trial)
    assert driver.runner.best.front == [first]


LOSS = Objective(name="loss", direction="minimize")
LIMITED = (LOSS, Objective(name="ms", direction=None, at_most=20.0))


def limited_driver(*objectives: Objective) -> Driver:
    driver = Driver(objectives=objectives or LIMITED, trial_concurrency=4)
    driver.ready()
    return driver


def finished(driver: Driver, report: object) -> Trial:
    driver.propose(x=1)
    trial = driver.runner.get_trials()[-1]
    driver.succeed(trial, report)
    return trial


def test_two_objectives_give_a_pareto_front() -> None:
    driver = limited_driver(Objective(name="default", direction="maximize"), Objective(name="cost"))
    for accuracy, cost in [(0.9, 5), (0.8, 1), (0.7, 2), (0.95, 9)]:
        finished(driver, {"default": accuracy, "cost": cost})
    values = [trial.values for trial in driver.runner.best.front]
    assert sorted(values) == [(0.8, 1.0), (0.9, 5.0), (0.95, 9.0)]


def test_only_trials_that_keep_the_limits_are_best() -> None:
    driver = limited_driver()
    best = driver.runner.best
    far = finished(driver, {"loss": 0.1, "ms": 90})
    assert (best.front, best.closest) == ([], far)
    near = finished(driver, {"loss": 0.2, "ms": 21})
    finished(driver, {"loss": 0.0, "ms": 30})
    assert (best.front, best.closest) == ([], near)
    feasible = finished(driver, {"loss": 0.9, "ms": 20})
    finished(driver, {"loss": 0.1, "ms": 20.5})
    assert (best.front, best.closest) == ([feasible], None)
    assert feasible.values == (0.9, 20.0)


def test_front_of_several_objectives_keeps_the_limits() -> None:
    driver = limited_driver(*LIMITED, Objective(name="f1", direction="maximize", at_least=0.5))
    for loss, ms, f1 in [(0.1, 5, 0.4), (0.3, 5, 0.6), (0.2, 25, 0.9), (0.4, 1, 0.7), (0.5, 1, 0.55)]:
        finished(driver, {"loss": loss, "ms": ms, "f1": f1})
    assert [trial.values for trial in driver.runner.best.front] == [(0.3, 5.0, 0.6), (0.4, 1.0, 0.7)]


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ({"default": 1.0}, "reported a dict without 'loss', 'ms': it has 'default'"),
        ({"loss": 1.0}, "reported a dict without 'ms': it has 'loss'"),
        ({}, "reported a dict without 'loss', 'ms'"),
        (0.5, "reported 0.5, not a dict with 'loss', 'ms'"),
        ({"loss": 1.0, "ms": "fast"}, "reported 'fast' under 'ms', which is not a number"),
        ({"loss": 1.0, "ms": float("nan")}, "reported NaN for ms as its final result"),
    ],
)
def test_final_result_without_every_metric_fails_the_trial_and_names_them(
    report: object, reason: str
) -> None:
    driver = limited_driver()
    trial = finished(driver, report)
    assert (trial.status, trial.reason, trial.values) == (TrialStatus.FAILED, reason, None)


@pytest.mark.parametrize(
    ("usable", "unusable", "why"),
    [
        ({"loss": 1.0}, {"default": 1.0}, "reported a dict without 'loss': it has 'default'"),
        ({"loss": 1.0, "ms": None}, {"loss": 1.0, "ms": "n/a"}, "'n/a' under 'ms', which is not a number"),
    ],
)
def test_intermediate_results_need_the_main_objective_only(
    usable: object, unusable: object, why: str
) -> None:
    driver = limited_driver()
    trial = driver.running_trial()
    driver.report(trial, usable)
    assert list(driver.runner.warnings()) == []
    driver.report(trial, unusable)
    assert trial.verdict is None
    (warning,) = driver.runner.warnings()
    assert "intermediate result 1 of trial 0: reported " in warning
    assert why in warning


def test_bare_number_is_the_only_objective_whatever_its_name() -> None:
    assert finished(limited_driver(LOSS), 0.5).values == (0.5,)
