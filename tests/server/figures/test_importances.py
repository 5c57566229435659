"""Importance: it ranks what is known, agrees with the analysis of variance, and says when it knows nothing."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pitchpipe.numerics.functional_anova import Tree, main_effects
from pitchpipe.search_space import SearchSpace
from pitchpipe.server.figures import (
    Curve,
    ExperimentTable,
    Importance,
    Objective,
    TrialRecord,
    dimensions_of,
    importance,
    plot_importance,
)

Function = Callable[[dict[str, Any]], float]
CUBE = {name: {"_type": "uniform", "_value": [0, 1]} for name in "abcd"}


def searched(space: dict[str, Any], function: Function, count: int = 200, **stop: Any) -> ExperimentTable:
    """Random trials of a function; `above=limit` stops those early that are worse."""
    rng = np.random.default_rng(7)
    parsed = SearchSpace.parse(space)
    trials = []
    for number in range(count):
        point = parsed.sample(rng)
        value = function(point)
        stopped = value > stop.get("above", math.inf)
        status = "EARLY_STOPPED" if stopped else "SUCCEEDED"
        trials.append(TrialRecord(number, status, point, {} if stopped else {"default": value}))
    return ExperimentTable.of("known", [Objective()], trials, dimensions_of(space))


def test_ranks_a_known_function_and_comes_near_its_shares() -> None:
    # Independent uniform variables: the variances of 6a, 3b and c are as 36 : 9 : 1.
    found = importance(searched(CUBE, lambda p: 6 * p["a"] + 3 * p["b"] + p["c"]))
    assert found.names[:3] == ("a", "b", "c")
    assert found.shares[:2] == pytest.approx((36 / 46, 9 / 46), abs=0.08)
    assert found.confidence == "high"
    assert found.trials == 200


def test_interaction_is_separated_from_the_effects_of_each() -> None:
    # The sign of (a - 1/2)(b - 1/2): neither explains anything alone.
    found = importance(searched(CUBE, lambda p: math.copysign(1, (p["a"] - 0.5) * (p["b"] - 0.5)), 600))
    assert found.interactions > 0.6
    assert max(found.shares) < 0.15


def test_options_without_an_order_are_found() -> None:
    space = {**CUBE, "act": {"_type": "choice", "_value": list("pqrst")}}
    found = importance(searched(space, lambda p: 3.0 * (p["act"] in "qs") + p["a"]))
    assert found.names[:2] == ("act", "a")


def test_logarithmic_parameter_is_measured_on_its_own_scale() -> None:
    space = {
        "lr": {"_type": "loguniform", "_value": [1e-6, 1.0]},
        "x": {"_type": "uniform", "_value": [0, 1]},
    }
    found = importance(searched(space, lambda p: (math.log10(p["lr"]) + 3) ** 2 + p["x"]))
    assert found.names == ("lr", "x")
    assert found.shares[0] > 0.8


def test_nested_parameter_counts_where_it_exists() -> None:
    options = [{"_name": "plain"}, {"_name": "deep", "k": {"_type": "uniform", "_value": [0, 1]}}]
    space = {"net": {"_type": "choice", "_value": options}, "x": {"_type": "uniform", "_value": [0, 1]}}
    found = importance(searched(space, lambda p: 4 * p["net"].get("k", 0.5) + 0.5 * p["x"], 300))
    assert found.names[0] == "net.k"
    assert dict(zip(found.names, found.shares, strict=True))["net"] < 0.1


def test_what_was_stopped_early_still_tells() -> None:
    found = importance(searched(CUBE, lambda p: 10 * (p["a"] > 0.4) + p["b"], above=5.0))
    assert found.names[0] == "a"


def test_stopped_trials_count_with_what_they_were_heading_for() -> None:
    """Each trial falls by 3 until its end; those above 2 are stopped after 1 or 4 of 10 results."""
    rng = np.random.default_rng(7)
    space = SearchSpace.parse(CUBE)
    trials, curves = [], []
    for number in range(120):
        point = space.sample(rng)
        value = 4 * point["a"] + 2 * point["b"]
        curve = value + 3.0 - np.arange(10) / 3.0
        count = 10 if value < 2.0 else (1, 4)[number % 2]
        curves.append(Curve(number, [*range(count)], curve[:count]))
        status, final = ("SUCCEEDED", {"default": value}) if count == 10 else ("EARLY_STOPPED", {})
        reported = {"default": float(curve[count - 1])}
        trials.append(TrialRecord(number, status, point, final, reported, reports=count))
    stopped = sum(one.status == "EARLY_STOPPED" for one in trials)
    table = ExperimentTable.of("known", [Objective()], trials, dimensions_of(CUBE), curves=curves)
    found, ended = importance(table), importance(table, stopped=False)
    assert (found.trials, found.stopped) == (120, stopped)
    assert (ended.trials, ended.stopped) == (120 - stopped, 0)
    assert found.names[:2] == ("a", "b")
    assert found.shares[0] == pytest.approx(0.8, abs=0.1)  # the variances are as 4 : 1
    assert found.fit > max(ended.fit, 0.8)


def test_stopped_trials_alone_are_enough() -> None:
    table = searched(CUBE, lambda p: 6 * p["a"] + p["b"])
    stopped = [
        TrialRecord(one.number, "EARLY_STOPPED", one.parameters, {}, one.values, reports=3)
        for one in table.trials
    ]
    found = importance(ExperimentTable.of("known", [Objective()], stopped, dimensions_of(CUBE)))
    assert (found.names[0], found.trials, found.stopped) == ("a", 200, 200)


def test_results_far_apart_that_stopped_trials_head_for_are_factors() -> None:
    """Each trial's result is a thousandth of its first report, and one in two is stopped there."""
    trials, curves = [], []
    rng = np.random.default_rng(7)
    for number in range(80):
        point = SearchSpace.parse(CUBE).sample(rng)
        value = 10.0 ** (6 * point["a"])
        reported = {"default": 1000.0 * value if number % 2 else value}
        curves.append(Curve(number, [0, 1][: 2 - number % 2], [1000.0 * value, value][: 2 - number % 2]))
        status, final = ("EARLY_STOPPED", {}) if number % 2 else ("SUCCEEDED", {"default": value})
        trials.append(TrialRecord(number, status, point, final, reported, reports=2 - number % 2))
    table = ExperimentTable.of("known", [Objective()], trials, dimensions_of(CUBE), curves=curves)
    found = importance(table)
    assert found.names[0] == "a"
    assert found.fit > 0.9


def test_noise_is_said_to_be_noise() -> None:
    noise = np.random.default_rng(3)
    found = importance(searched(CUBE, lambda _: float(noise.random())))
    assert found.confidence in ("none", "low")
    assert "confidence" in plot_importance(found).layout.annotations[0].text
    warnings = [Importance(fit=fit).warning for fit in (0.0, 0.2, 0.5)]
    assert warnings == ["the order is chance", "the order may change", ""]


def test_one_absurd_result_changes_nothing() -> None:
    table = searched(CUBE, lambda p: 6 * p["a"] + p["b"] - 3)
    trials = [
        *table.trials,
        TrialRecord(999, "SUCCEEDED", {"a": 0.0, "b": 0.5, "c": 0.9, "d": 0.1}, {"default": 1e9}),
    ]
    found = importance(ExperimentTable.of("known", [Objective()], trials, dimensions_of(CUBE)))
    assert found.names[0] == "a"
    assert found.confidence == "high"


@pytest.mark.parametrize("absurd", [-1e9, -1e200, -1e299])
def test_size_of_absurd_results_does_not_matter(absurd: float) -> None:
    found = importance(searched(CUBE, lambda p: absurd if p["c"] < 0.02 else p["a"] - 0.5))
    assert found.names[0] == "a"
    assert 0.3 < found.fit <= 1


def test_same_seed_same_answer_and_intervals_hold_the_share() -> None:
    table = searched(CUBE, lambda p: 6 * p["a"] + 3 * p["b"], 60)
    assert importance(table) == importance(table) != importance(table, seed=1)
    found = importance(table)
    assert all(
        low <= share <= high for low, share, high in zip(found.low, found.shares, found.high, strict=True)
    )


@pytest.mark.parametrize(
    ("count", "function", "why"),
    [
        (3, lambda p: p["a"], "3 trials have a finite result; importance needs 8."),
        (20, lambda p: 1.0, "All results are equal."),
        (20, lambda p: math.nan, "0 trials have a finite result; importance needs 8."),
    ],
)
def test_says_why_there_is_none(count: int, function: Function, why: str) -> None:
    found = importance(searched(CUBE, function, count))
    assert found.why_not == why
    assert plot_importance(found).layout.annotations[0].text == why


def test_main_effects_are_exact_on_a_tree_worked_out_by_hand() -> None:
    # Value 4 where a < 1/4, else 0 for b < 1/2 and 2 for b >= 1/2.
    low = np.array([[0.0, 0.0], [0.25, 0.0], [0.25, 0.5]])
    high = np.array([[0.25, 1.0], [1.0, 0.5], [1.0, 1.0]])
    shares, together = main_effects(Tree(low, high, np.array([4.0, 0.0, 2.0])))
    mean = 1.75
    total = 0.25 * (4 - mean) ** 2 + 0.375 * mean**2 + 0.375 * (2 - mean) ** 2
    alone_a = 0.25 * (4 - mean) ** 2 + 0.75 * (1 - mean) ** 2
    alone_b = 0.5 * (1.0 - mean) ** 2 + 0.5 * (2.5 - mean) ** 2
    assert shares.tolist() == pytest.approx([alone_a / total, alone_b / total])
    assert together == pytest.approx(1 - (alone_a + alone_b) / total)


def test_parameters_whose_names_are_cut_to_one_label_have_bars_of_their_own() -> None:
    names = [f"{'encoder.block.' * 3}{letter}{'.of_the_layer' * 3}" for letter in "ab"]
    space = {name: {"_type": "uniform", "_value": [0, 1]} for name in names}
    bar = plot_importance(searched(space, lambda p: 4 * p[names[0]] + p[names[1]])).data[0]
    assert bar.y == ("<i>interactions</i>", names[1], names[0])
