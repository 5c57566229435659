"""The rules that look at one trial at a time: threshold, plateau, and the patient wrapper."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pitchpipe.assessors import (
    AssessResult,
    MedianstopAssessor,
    PatientAssessor,
    PlateauAssessor,
    ThresholdAssessor,
)

GOOD, BAD = AssessResult.Good, AssessResult.Bad


@pytest.mark.parametrize(
    ("arguments", "value", "reason"),
    [
        ({"lower": 0.2}, 0.1, "0.1 is below 0.2 after 3 results"),
        ({"upper": 10}, 11, "11 is above 10 after 3 results"),
        ({"lower": -1, "upper": 1}, math.nan, "NaN is not within -1 and 1 after 3 results"),
        ({"upper": 1}, math.inf, "inf is above 1 after 3 results"),
        ({"lower": 0.2, "upper": 0.5}, 0.2, None),
        ({"lower": 0.2, "upper": 0.5}, 0.5, None),
        ({"lower": 0.2, "start_step": 4}, 0.1, None),
        ({"lower": 0.2, "start_step": 3}, 0.1, "0.1 is below 0.2 after 3 results"),
    ],
)
def test_threshold_stops_outside_its_bounds(arguments: Any, value: float, reason: str | None) -> None:
    rule = ThresholdAssessor(**arguments)
    assert rule.assess_trial("t", [0.3, 99.0, value]) is (GOOD if reason is None else BAD)
    assert rule.reason == reason


def judged(rule: Any, results: list[float]) -> list[bool]:
    """Return whether a trial continues, result by result."""
    return [rule.assess_trial("t", results[:n]) is GOOD for n in range(1, len(results) + 1)]


def test_plateau_is_as_long_as_the_patience() -> None:
    rule = PlateauAssessor("maximize", patience=3)
    assert judged(rule, [0.1, 0.5, 0.5, 0.4, 0.5]) == [True, True, True, True, False]
    assert rule.reason == "no better than 0.5 for the last 3 of 5 results"
    assert judged(rule, [0.1, 0.5, 0.5, 0.4, 0.6, 0.1]) == [True] * 6


def test_small_improvements_do_not_end_a_plateau() -> None:
    rule = PlateauAssessor("minimize", patience=2, min_delta=0.1)
    assert judged(rule, [1.0, 0.95, 0.85, 0.8, 0.8]) == [True, True, True, True, False]
    assert rule.reason == "no better than 0.85 for the last 2 of 5 results"


def test_plateau_before_the_start_step_is_let_be() -> None:
    assert judged(PlateauAssessor("maximize", patience=1, start_step=4), [0.5] * 4) == [True] * 3 + [False]


def test_plateau_of_nan_is_a_plateau() -> None:
    rule = PlateauAssessor("minimize", patience=2)
    assert judged(rule, [math.nan] * 3) == [True, True, False]
    assert rule.reason == "no better than NaN for the last 2 of 3 results"
    assert judged(rule, [math.nan, math.nan, 5.0]) == [True, True, True]


def test_plateau_of_results_in_groups() -> None:
    rule = PlateauAssessor("maximize", patience=3)
    assert rule.assess_trial("t", [0.5, 0.6, 0.1]) is GOOD
    assert rule.assess_trial("t", [0.5, 0.6, 0.1, 0.1, 0.1]) is BAD


def patient(**arguments: Any) -> PatientAssessor:
    """Return a patient median rule that knows one trial, which was at 0.8 throughout."""
    rule = PatientAssessor(**{"assessor": "Medianstop", "optimize_mode": "maximize", **arguments})
    rule.assess_trial("old", [0.8] * 12)
    rule.trial_end("old", True)
    return rule


def test_patient_waits_for_improvements_to_end() -> None:
    rule = patient(patience=3)
    assert judged(rule, [0.1, 0.2, 0.3, 0.3, 0.3]) == [True] * 5
    assert rule.assess_trial("t", [0.1, 0.2, 0.3, 0.3, 0.3, 0.2]) is BAD
    assert (
        rule.reason == "0.3 is below the median 0.8 of 1 trial after 6 results; no improvement for 3 results"
    )


def test_patient_lets_a_plateau_be_that_the_rule_likes() -> None:
    assert judged(patient(patience=1), [0.9, 0.8, 0.7, 0.6]) == [True] * 4


def test_patient_hands_arguments_on() -> None:
    rule = patient(patience=1, assessor_args={"start_step": 5})
    assert judged(rule, [0.1] * 6) == [True, True, True, True, False, False]
    rule = PatientAssessor("medianstop", patience=1, optimize_mode="minimize")
    rule.assess_trial("old", [0.2] * 5)
    rule.trial_end("old", True)
    assert judged(rule, [0.1] * 4) == [True] * 4
    assert judged(rule, [0.5] * 3) == [True, False, False]


def test_patient_passes_every_result_and_end_to_the_rule() -> None:
    rule, alone = patient(patience=1), MedianstopAssessor("maximize")
    alone.assess_trial("old", [0.8] * 12)
    alone.trial_end("old", True)
    for other in (rule, alone):
        judged(other, [0.1, 0.9, 0.3])
        other.trial_end("t", True)
        assert other.assess_trial("next", [0.2, 0.2]) is BAD
    assert alone.reason == "0.2 is below the median 0.5 of 2 trials after 2 results"
    assert rule.reason == f"{alone.reason}; no improvement for 1 result"


def test_patient_passes_the_objectives_to_the_rule() -> None:
    rule = PatientAssessor("ASHA", patience=1)
    rule.update_objectives([{"direction": "maximize"}, {"name": "cost", "direction": "minimize"}])
    for i, cost in enumerate([3.0, 2.0, 1.0, 4.0]):
        history = [{"default": 0.5, "cost": cost}] * 3
        assert rule.assess_trial(str(i), history) is (BAD if cost == 4.0 else GOOD)
