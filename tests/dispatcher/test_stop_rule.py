"""The stop rule: what counts as a result, and when the search ends."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pitchpipe.dispatcher.stop_rule import StopRule
from pitchpipe.protocol import CommandType, dumps
from pitchpipe.tuners import RandomTuner

SPACE = {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}
MINIMIZE = [{"direction": "minimize"}]
LIMITED = [{"direction": "maximize"}, {"name": "ms", "constraint": "<= 0.8"}]


def rule(below: float | str = 0.01, fewest: int = 10, objectives: Any = MINIMIZE) -> StopRule:
    made = StopRule({"expectedGainBelow": below, "minTrials": fewest}, objectives)
    made.update_search_space(SPACE)
    return made


def succeed(
    rule: StopRule, count: int, report: Callable[[dict[str, float]], Any], first: int = 0, event: bool = True
) -> StopRule:
    """Let trials of a rule end with what they report; return the rule."""
    rng = np.random.default_rng(first)
    for number in range(first, first + count):
        parameters = {name: float(rng.random()) for name in "xy"}
        trial = f"trial{number}"
        rule.final({"trial_job_id": trial, "value": dumps(report(parameters))})
        rule.trial_end({"parameters": parameters, "parameter_source": "algorithm"}, trial, event)
    return rule


def bowl(parameters: dict[str, float]) -> float:
    return (parameters["x"] - 0.3) ** 2 + (parameters["y"] - 0.7) ** 2


def test_search_ends_when_the_gain_is_below_the_number_and_says_both() -> None:
    ended = succeed(rule(0.05), 40, bowl)
    assert ended.why_stop().startswith("expected gain 0.0")
    assert ended.why_stop().endswith(" is below 0.05 after 40 trials")


def test_means_of_repeats_are_of_families() -> None:
    ended = StopRule({"expectedGainBelow": 0.05, "minTrials": 10}, MINIMIZE, has_repeats=True)
    ended.update_search_space(SPACE)
    succeed(ended, 40, bowl)
    assert ended.why_stop().endswith(" after 40 families")


def test_search_continues_while_much_can_be_gained() -> None:
    early, exact = succeed(rule(0.05), 9, bowl), succeed(rule(1e-9), 40, bowl)
    assert early.why_stop() == exact.why_stop() == ""


def test_what_is_maximized_counts_the_other_way() -> None:
    ended = rule(0.05, objectives=[{"direction": "maximize"}])
    succeed(ended, 40, lambda parameters: -bowl(parameters))
    plain = succeed(rule(0.05), 40, bowl)
    assert ended.why_stop() == plain.why_stop() != ""


def test_gain_below_the_noise_ends_the_search() -> None:
    noise = np.random.default_rng(0)
    ended = rule("noise")
    succeed(ended, 60, lambda parameters: bowl(parameters) + 0.1 * float(noise.standard_normal()))
    assert " is below the noise 0.0" in ended.why_stop() or " is below the noise 0.1" in ended.why_stop()


def test_failed_trials_do_not_count() -> None:
    ended = succeed(rule(0.05, fewest=20), 15, bowl)
    succeed(ended, 30, bowl, first=15, event=False)
    assert ended.why_stop() == ""
    succeed(ended, 5, bowl, first=45)
    assert ended.why_stop().endswith("after 20 trials")


def test_starting_point_that_fails_after_its_result_does_not_count() -> None:
    ended = rule(0.05, fewest=1)
    ended.import_data([{"parameter": {"x": 0.1, "y": 0.1}, "value": "0.5"}])
    assert ended.why_stop() != ""
    ended.trial_end({"parameters": {"x": 0.1, "y": 0.1}, "parameter_source": "defaults"}, "trial0", False)
    assert ended.why_stop() == ""


def test_only_trials_that_keep_the_limits_count_for_the_least_number() -> None:
    ended = rule(0.05, fewest=20, objectives=LIMITED)
    succeed(ended, 60, lambda parameters: {"default": -bowl(parameters), "ms": 0.9})
    assert ended.why_stop() == ""
    succeed(ended, 60, lambda parameters: {"default": -bowl(parameters), "ms": parameters["x"]}, first=60)
    assert ended.why_stop() != ""


@pytest.mark.parametrize(
    "item",
    [
        {"parameter": {"x": 0.5, "y": 0.5}, "value": 0.1, "source": "old"},
        {"parameter": {"x": 0.5, "y": 0.5}, "value": "nonsense"},
        {"parameter": {"x": 0.5, "y": 0.5}, "value": {"loss": 1}},
        {"parameter": {"x": 0.5, "y": 0.5}, "value": float("inf")},
        {"parameter": {"x": 7.0, "y": 0.5}, "value": 0.1},
        {"parameter": None, "value": 0.1},
        {},
        None,
    ],
    ids=["earlier search", "text", "other metric", "infinite", "outside", "no parameters", "empty", "null"],
)
def test_what_is_not_a_result_of_this_space_does_not_count(item: Any) -> None:
    ended = rule(0.05, fewest=1)
    ended.import_data([item] * 30)
    assert ended.why_stop() == ""


def test_restored_rule_decides_as_the_saved_one_would() -> None:
    saved, restored = rule(0.05), rule(0.05)
    succeed(saved, 30, bowl)
    saved.final({"trial_job_id": "late", "value": "0.5"})
    restored.take_state(pickle.loads(pickle.dumps(saved.state())))
    for one in (saved, restored):
        one.trial_end({"parameters": {"x": 0.9, "y": 0.9}}, "late", True)
        succeed(one, 9, bowl, first=31)
    assert saved.why_stop() == restored.why_stop() != ""


def test_dispatcher_declines_with_the_reason_and_asks_the_tuner_again_after_a_surprise(host: Any) -> None:
    one = host(RandomTuner(seed=0), stop_rule=rule(0.05))
    one.initialize(SPACE)
    rng = np.random.default_rng(0)
    data = [{"x": float(x), "y": float(y)} for x, y in rng.random((30, 2))]
    one.send(CommandType.ImportData, [{"parameter": point, "value": bowl(point)} for point in data])
    one.send(CommandType.RequestTrialJobs, 2)
    declined = one.expect(CommandType.NoMoreTrialJobs)
    assert declined["reason"].startswith("expected gain 0.")
    assert declined["parameters"] == ""
    # The world is not the bowl that it seemed to be.
    one.send(
        CommandType.ImportData,
        [{"parameter": point, "value": -5 + 3 * i % 7} for i, point in enumerate(data)],
    )
    assert len(one.request(2)) == 2


def test_dispatcher_saves_the_rule_with_the_tuner(host: Any) -> None:
    one = host(RandomTuner(seed=0), stop_rule=rule(0.05))
    one.initialize(SPACE)
    point = {"x": 0.25, "y": 0.5}
    one.send(CommandType.ImportData, [{"parameter": point, "value": 0.5}])
    one.processed("default", 2)
    state = one.dispatcher.state_of("default")
    other = host(RandomTuner(seed=0), stop_rule=rule(0.05, fewest=1)).dispatcher
    other.take_state("default", state)
    assert other.stop_rule.why_stop().endswith("after 1 trial")
