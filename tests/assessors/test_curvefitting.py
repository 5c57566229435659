"""Extrapolation of learning curves, and the rule that stands on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pitchpipe.assessors import AssessResult, CurvefittingAssessor
from pitchpipe.assessors.curvefitting import extrapolate

GOOD, BAD = AssessResult.Good, AssessResult.Bad

CURVES: dict[str, Callable[[Any], Any]] = {
    "pow3": lambda x: 0.9 - 0.5 * x**-0.7,
    "exp3": lambda x: 0.85 - 0.6 * np.exp(-0.15 * x),
    "ilog2": lambda x: 0.9 - 0.4 / np.log(x + 1),
    "hill3": lambda x: 0.1 + 0.8 * x**1.5 / (x**1.5 + 5**1.5),
    "weibull": lambda x: 0.9 - 0.7 * np.exp(-((0.2 * x) ** 0.8)),
    "flat": lambda x: 0.5 + 0 * x,
    "negative": lambda x: -3.0 * np.exp(-0.1 * x) - 1.0,
    "large": lambda x: 1e6 * (1 - 1 / x),
}


@pytest.mark.parametrize("name", list(CURVES))
def test_families_of_curves_are_extrapolated(name: str) -> None:
    curve = CURVES[name]
    reach = abs(curve(100.0) - curve(1.0)) or 1.0
    prediction = extrapolate(curve(np.arange(1.0, 21.0)), 100)
    assert prediction is not None
    assert abs(prediction.mean - curve(100.0)) < 0.06 * reach
    assert prediction.deviation >= 0


@pytest.mark.parametrize("name", ["pow3", "exp3", "weibull"])
def test_noise_is_recognized_by_the_deviation(name: str) -> None:
    x, rng = np.arange(1.0, 16.0), np.random.default_rng(1)
    clean = extrapolate(CURVES[name](x), 60)
    errors = []
    for _ in range(20):
        noisy = extrapolate(CURVES[name](x) + 0.02 * rng.standard_normal(len(x)), 60)
        assert noisy is not None
        assert clean is not None
        assert noisy.deviation > clean.deviation
        errors.append((noisy.mean - CURVES[name](60.0)) / noisy.deviation)
    assert np.mean(np.abs(errors)) < 2.5


def test_a_falling_curve_is_taken_for_a_flat_one() -> None:
    prediction = extrapolate(np.array([0.9, 0.8, 0.7, 0.6, 0.5]), 50)
    assert prediction is not None
    assert 0.5 <= prediction.mean <= 0.9


def test_what_is_not_a_number_is_left_out() -> None:
    values = CURVES["pow3"](np.arange(1.0, 13.0))
    whole = extrapolate(values, 50)
    values[[3, 7]] = [math.nan, -math.inf]
    holed = extrapolate(values, 50)
    assert whole is not None
    assert holed is not None
    assert abs(whole.mean - holed.mean) < 0.01
    assert extrapolate(np.array([math.nan, 0.5, math.inf, 0.6]), 10) is None


def test_long_curves_are_thinned_out() -> None:
    curve = CURVES["exp3"]
    prediction = extrapolate(curve(np.arange(1.0, 100_001.0)), 200_000)
    assert prediction is not None
    assert abs(prediction.mean - 0.85) < 0.01


def results(level: float, count: int = 20) -> list[float]:
    return [level * (1 - 0.7 ** (n + 1)) for n in range(count)]


def experienced(**arguments: Any) -> CurvefittingAssessor:
    """Return a rule that has seen a trial come to 0.8."""
    rule = CurvefittingAssessor(**arguments)
    sign = -1.0 if arguments.get("optimize_mode") == "minimize" else 1.0
    rule.assess_trial("old", [sign * value for value in results(0.8)])
    rule.trial_end("old", True)
    return rule


@pytest.mark.parametrize(("mode", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
@pytest.mark.parametrize(("level", "verdict"), [(0.9, GOOD), (0.78, GOOD), (0.72, BAD), (0.3, BAD)])
def test_trials_predicted_worse_than_the_threshold_are_stopped(
    level: float, verdict: AssessResult, mode: str, sign: float
) -> None:
    history = [sign * value for value in results(level, 8)]
    assert experienced(optimize_mode=mode).assess_trial("x", history) is verdict


def test_losses_are_judged_by_their_size() -> None:
    rule = CurvefittingAssessor(optimize_mode="minimize", threshold=0.9)
    losses = [0.2 + 2.0 * 0.7**n for n in range(1, 21)]
    rule.assess_trial("old", losses)
    rule.trial_end("old", True)
    assert rule.assess_trial("near", losses[:8]) is GOOD
    assert rule.assess_trial("bad", [value + 0.1 for value in losses[:8]]) is BAD
    assert "above 0.221" in (rule.reason or "")


def test_reason_has_the_numbers() -> None:
    rule = experienced()
    assert rule.assess_trial("x", results(0.4, 10)) is BAD
    assert rule.reason is not None
    assert rule.reason.startswith("predicted 0.398 +- ")
    assert rule.reason.endswith(
        "after 20 results, below 0.759394 (0.95 of the best, 0.799362), from 10 results"
    )


def test_judged_from_the_start_step_on_in_gaps_and_not_at_the_end() -> None:
    rule = experienced(start_step=4, gap=3)
    verdicts = [rule.assess_trial("x", results(0.3)[:n]) for n in range(1, 21)]
    assert [n for n, verdict in enumerate(verdicts, 1) if verdict is BAD] == [4, 7, 10, 13, 16, 19]
    assert experienced().assess_trial("x", results(0.3, 20)) is GOOD


def test_the_best_is_that_of_trials_that_succeeded() -> None:
    rule = CurvefittingAssessor()
    rule.assess_trial("failed", results(0.9))
    rule.trial_end("failed", False)
    assert rule.assess_trial("x", results(0.2, 8)) is GOOD
    for trial, level in (("a", 0.5), ("b", 0.3)):
        rule.assess_trial(trial, results(level))
        rule.trial_end(trial, True)
    assert rule.assess_trial("x", results(0.49, 8)) is GOOD
    assert rule.assess_trial("x", results(0.35, 8)) is BAD


def test_a_trial_of_nan_alone_is_stopped() -> None:
    rule = experienced()
    assert rule.assess_trial("x", [math.nan] * 6) is BAD
    assert rule.reason == "no number in 6 results, while 0.759394 (0.95 of the best, 0.799362) is asked for"
