"""Families: configurations that are run several times."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pitchpipe.protocol import CommandType, Objective, family_end_of, repeat_of, seed_of_repeat
from pitchpipe.runner import events as happened
from pitchpipe.runner.events import added_trial
from pitchpipe.runner.experiment_state import ExperimentStatus
from pitchpipe.runner.family_rules import FamilyEnd, Repeats
from pitchpipe.runner.trial import Trial, TrialStatus

from .driver import Driver, running_trial, sent

SEEDS = (11, 12, 13, 14, 15)


def repeating(repeats: Repeats | None = None, **settings: Any) -> Driver:
    driver = Driver(repeats=repeats or Repeats(3, SEEDS[:3]), **settings)
    driver.ready()
    return driver


def made(driver: Driver) -> list[tuple[int, int] | None]:
    return [repeat_of(trial.record) for trial in driver.runner.get_trials()]


def running(driver: Driver) -> list[Trial]:
    return [trial for trial in driver.runner.live.values() if trial.is_assigned]


def finish(driver: Driver, *values: Any) -> None:
    """Let the oldest running trials succeed, one for each value."""
    for value in values:
        driver.succeed(running(driver)[0], value)


def tried(driver: Driver, *values: Any) -> None:
    """Propose a configuration, and let its repeats succeed."""
    driver.propose(x=1)
    finish(driver, *values)


def finals(driver: Driver) -> list[dict[str, Any]]:
    """Return the results that the tuner takes."""
    metrics = sent(driver.effects, CommandType.ReportMetricData)
    return [one for one in metrics if one["type"] == "FINAL" and "repeat" not in one]


def ends(driver: Driver) -> list[tuple[int, str]]:
    """Return the ends that the tuner takes: parameter id and status."""
    payloads = sent(driver.effects, CommandType.TrialEnd)
    return [
        (json.loads(one["hyper_params"])["parameter_id"], one["event"])
        for one in payloads
        if "repeat" not in one
    ]


def test_configuration_runs_several_times_and_the_tuner_learns_the_mean_once() -> None:
    driver = repeating(trial_concurrency=1)
    tried(driver, 1.0, 2.0, 4.5)
    trials = driver.runner.get_trials()
    assert made(driver) == [(0, 0), (0, 1), (0, 2)]
    assert [seed_of_repeat(trial.record) for trial in trials] == [11, 12, 13]
    assert {json.loads(trial.record)["parameters"]["x"] for trial in trials} == {1}
    assert {trial.parameter_id for trial in trials} == {0}
    (final,) = finals(driver)
    assert (final["parameter_id"], final["trial_job_id"]) == (0, trials[0].trial_id)
    assert (json.loads(final["value"]), final["repeats"]) == (2.5, [1.0, 2.0, 4.5])
    assert ends(driver) == [(0, "SUCCEEDED")]
    assert family_end_of(trials[0].record) == "complete"
    assert [(trial.sequence_id, trial.values) for trial in driver.runner.best.front] == [(0, (2.5,))]


@pytest.mark.parametrize(
    ("values", "expected"), [((1e200, 2e200, 3e200), 2e200), ((1.7e308, 1.7e308, 1.7e308), 1.7e308)]
)
def test_configuration_that_diverges_has_a_mean_and_loses_the_race(
    values: Sequence[float], expected: float
) -> None:
    driver = repeating(trial_concurrency=1)
    tried(driver, 1.0, 2.0, 4.5)
    tried(driver, *values[:2])
    assert family_end_of(driver.runner.get_trials()[3].record) == "raced"
    driver = repeating(trial_concurrency=1)
    tried(driver, *values)
    assert json.loads(finals(driver)[0]["value"]) == pytest.approx(expected)


def test_repeats_run_at_the_same_time_and_requests_leave_room_for_them() -> None:
    driver = repeating(trial_concurrency=4)
    assert sent(driver.effects, CommandType.RequestTrialJobs) == [2]
    driver.propose(x=1)
    driver.propose(x=2)
    assert made(driver) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    finish(driver, 1.0, 1.0)
    assert made(driver)[4:] == [(0, 2)]
    assert sent(driver.effects, CommandType.RequestTrialJobs) == [2, 1]


def test_without_a_race_a_request_leaves_room_for_all_repeats() -> None:
    driver = repeating(Repeats(3, race=False), trial_concurrency=6)
    assert sent(driver.effects, CommandType.RequestTrialJobs) == [2]
    driver.propose(x=1)
    assert made(driver) == [(0, 0), (0, 1), (0, 2)]
    assert seed_of_repeat(driver.runner.get_trials()[0].record) is None


def test_family_that_is_clearly_worse_gets_no_further_repeats() -> None:
    driver = repeating(Repeats(5), trial_concurrency=1)
    tried(driver, 0.1, 0.2, 0.3, 0.2, 0.2)
    tried(driver, 0.9, 0.8)
    assert made(driver)[5:] == [(5, 0), (5, 1)]
    assert family_end_of(driver.runner.get_trials()[5].record) == "raced"
    assert [json.loads(final["value"]) for final in finals(driver)] == pytest.approx([0.2, 0.85])
    tried(driver, 0.1, 0.4, 0.1, 0.2, 0.3)  # not clearly worse: it runs to the end
    assert made(driver)[7:] == [(7, repeat) for repeat in range(5)]


def test_nothing_races_before_a_family_is_complete() -> None:
    driver = repeating(trial_concurrency=4)
    driver.propose(x=1)
    driver.propose(x=2)
    finish(driver, 0.1, 0.1, 9.0, 9.1)
    assert [end for _, end in ends(driver)] == []
    finish(driver, 0.1)  # now the first one is
    assert ends(driver) == [(0, "SUCCEEDED")]
    driver.end(running(driver)[0], exit_code=1)
    assert ends(driver) == [(0, "SUCCEEDED"), (1, "SUCCEEDED")]


def test_maximized_and_several_objectives_race() -> None:
    accuracy = Objective(name="default", direction="maximize")
    driver = repeating(objectives=(accuracy, Objective(name="ms")), trial_concurrency=1)
    tried(driver, *[{"default": 0.9, "ms": 5}] * 3)
    tried(driver, *[{"default": 0.1, "ms": 4}] * 3)  # faster: not worse in every objective
    tried(driver, *[{"default": 0.1, "ms": 6}] * 2)
    assert made(driver) == [(0, 0), (0, 1), (0, 2), (3, 0), (3, 1), (3, 2), (6, 0), (6, 1)]
    assert [one.values for one in driver.runner.best.front] == [(0.9, 5.0), (0.1, 4.0)]
    assert json.loads(finals(driver)[0]["value"]) == {"default": 0.9, "ms": 5.0}


def test_family_that_clearly_violates_a_limit_loses_against_one_that_keeps_it() -> None:
    limited = Objective(name="ms", direction=None, at_most=20.0)
    driver = repeating(Repeats(3), objectives=(Objective(), limited), trial_concurrency=1)
    tried(driver, *[{"default": 0.1, "ms": 30 + i} for i in range(3)])
    assert made(driver) == [(0, 0), (0, 1), (0, 2)]  # nothing keeps the limit yet
    tried(driver, *[{"default": 0.5, "ms": 15}] * 3)
    tried(driver, {"default": 0.1, "ms": 30}, {"default": 0.1, "ms": 31})
    tried(driver, {"default": 0.1, "ms": 18}, {"default": 0.1, "ms": 23})  # perhaps it keeps the limit
    assert made(driver)[6:] == [(6, 0), (6, 1), (8, 0), (8, 1), (8, 2)]
    assert family_end_of(driver.runner.get_trials()[6].record) == "raced"


def test_failed_repeats_are_left_out_of_the_mean() -> None:
    driver = repeating(trial_concurrency=1)
    tried(driver, 1.0)
    driver.end(running(driver)[0], exit_code=1)
    finish(driver, 2.0)
    assert [(json.loads(one["value"]), one["repeats"]) for one in finals(driver)] == [(1.5, [1.0, 2.0])]
    assert ends(driver) == [(0, "SUCCEEDED")]


def test_family_fails_if_its_first_repeats_do() -> None:
    driver = repeating(trial_concurrency=1)
    driver.propose(x=1)
    for _ in range(2):
        driver.end(running(driver)[0], exit_code=1)
    assert (finals(driver), ends(driver)) == ([], [(0, "FAILED")])
    assert made(driver) == [(0, 0), (0, 1)]
    assert driver.runner.best.front == []


def test_repeat_that_is_stopped_early_ends_its_family_without_a_result() -> None:
    driver = repeating(trial_concurrency=2)
    driver.propose(x=1)
    first, second = running(driver)
    driver.succeed(first, 0.1)
    driver.handle(happened.KillVerdict(driver.now, second.trial_id, "worse than the median"))
    driver.end(second, signal=15, exit_code=None)
    assert (finals(driver), ends(driver)) == ([], [(0, "EARLY_STOPPED")])
    assert driver.runner.families.of(first).end is FamilyEnd.STOPPED  # type: ignore[union-attr]


def test_results_of_single_repeats_are_marked_for_the_assessor() -> None:
    driver = repeating(trial_concurrency=1)
    driver.propose(x=1)
    trial = running(driver)[0]
    driver.start(trial)
    driver.report(trial, 0.5)
    driver.succeed(trial, 0.4)
    metrics = sent(driver.effects, CommandType.ReportMetricData)
    assert [(one["type"], one["repeat"]) for one in metrics] == [("PERIODICAL", 0), ("FINAL", 0)]
    assert [one["repeat"] for one in sent(driver.effects, CommandType.TrialEnd)] == [0]


def test_starting_points_and_added_trials_are_families() -> None:
    driver = repeating(Repeats(2), trial_concurrency=1)
    driver.handle(added_trial({"x": 7}, driver.now, source="defaults"))
    driver.handle(added_trial({"x": 8}, driver.now))
    finish(driver, 1.0, 2.0)
    assert sent(driver.effects, CommandType.ImportData) == [[{"parameter": {"x": 7}}]]  # it runs
    finish(driver, 3.0, 4.0)
    assert sorted(made(driver)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    imported = sent(driver.effects, CommandType.ImportData)[-1]
    assert [(row["parameter"], json.loads(row["value"])) for row in imported] == [({"x": 7}, 2.0)]


def test_max_trial_number_counts_trials_and_a_family_continues_with_more_of_them() -> None:
    driver = repeating(trial_concurrency=2, max_trial_number=4)
    driver.propose(x=1)
    driver.propose(x=2)
    finish(driver, 1.0, 1.0, 1.0, 1.0)
    assert driver.runner.status is ExperimentStatus.DONE
    assert len(driver.runner.get_trials()) == 4
    cut = [family for family in driver.runner.families if family.end is None]
    assert len(cut) == 1


def test_restored_families_continue_with_the_repeats_that_are_missing() -> None:
    driver = repeating(trial_concurrency=2)
    tried(driver, 1.0)
    driver.handle(happened.StopRequested(driver.now))
    driver.end(running(driver)[0], signal=15, exit_code=None)
    assert made(driver) == [(0, 0), (0, 1)]
    assert (finals(driver), ends(driver)) == ([], [])
    driver.restart()
    driver.ready()
    assert made(driver) == [(0, 0), (0, 1), (0, 1)]  # the cancelled one again, with its seed
    assert [seed_of_repeat(trial.record) for trial in driver.runner.get_trials()] == [11, 12, 12]
    finish(driver, 2.0, 3.0)
    assert [json.loads(one["value"]) for one in finals(driver)] == [2.0]
    driver.restart()
    driver.ready()
    assert len(finals(driver)) == 1
    assert [one.values for one in driver.runner.best.front] == [(2.0,)]


def test_retried_repeat_corrects_the_mean_of_a_family_that_has_ended() -> None:
    driver = repeating(Repeats(2), trial_concurrency=1)
    tried(driver, 1.0)
    driver.end(running(driver)[0], exit_code=1)
    assert [one.values for one in driver.runner.best.front] == [(1.0,)]
    driver.restart()
    driver.ready()
    driver.handle(happened.RetryFailedRequested(driver.now))
    driver.restart()
    driver.ready()
    finish(driver, 5.0)
    assert [one.values for one in driver.runner.best.front] == [(3.0,)]
    (imported,) = sent(driver.effects, CommandType.ImportData)
    assert [json.loads(row["value"]) for row in imported] == [3.0]
    assert ends(driver) == [(0, "SUCCEEDED")]


def test_killed_family_is_no_failure_for_the_tuner() -> None:
    driver = repeating(Repeats(2), trial_concurrency=2)
    driver.propose(x=1)
    for trial in running(driver):
        driver.handle(happened.TrialKillRequested(driver.now, trial.trial_id))
        driver.end(trial, signal=15, exit_code=None)
    assert ends(driver) == [(0, "USER_CANCELED")]


def test_opposite_infinities_have_no_mean() -> None:
    driver = repeating(Repeats(2), trial_concurrency=1)
    tried(driver, float("inf"), float("-inf"))
    assert (finals(driver), ends(driver)) == ([], [(0, "FAILED")])


def test_without_repeats_nothing_is_marked() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.succeed(trial)
    assert repeat_of(trial.record) is None
    assert "repeat" not in sent(driver.effects, CommandType.TrialEnd)[0]
    assert trial.status is TrialStatus.SUCCEEDED


def test_nothing_is_asked_ahead_of_repeats() -> None:
    driver = repeating(Repeats(2, race=False), trial_concurrency=1)
    driver.ready(learns=False)
    driver.propose(x=1)
    for trial in driver.runner.get_trials():
        driver.start(trial)
        driver.succeed(trial)
    assert set(sent(driver.effects, CommandType.RequestTrialJobs)) == {1}
