"""The median stopping rule against its definition, written out the slow way."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.assessors import AssessResult, MedianstopAssessor

GOOD, BAD = AssessResult.Good, AssessResult.Bad
VALUES = st.floats(-100, 100).map(lambda value: round(value, 2))
TRIALS = st.lists(st.tuples(st.lists(VALUES, min_size=1, max_size=6), st.booleans()), max_size=9)


def expected(trials: list, history: list[float], mode: str, start_step: int) -> AssessResult:
    """Apply the rule literally: the best so far against the median of the succeeded trials' averages."""
    step = len(history)
    averages = sorted(sum(t[:step]) / step for t, ok in trials if ok and len(t) >= max(step, start_step))
    if step < start_step or not averages:
        return GOOD
    if mode == "maximize":
        return BAD if max(history) < statistics.median_low(averages) else GOOD
    return BAD if min(history) > statistics.median_high(averages) else GOOD


@settings(max_examples=50)
@given(
    TRIALS,
    st.lists(VALUES, min_size=1, max_size=7),
    st.sampled_from(["maximize", "minimize"]),
    st.integers(0, 4),
)
def test_verdicts_are_those_of_the_definition(
    trials: list[tuple[list[float], bool]], history: list[float], mode: str, start_step: int
) -> None:
    rule = MedianstopAssessor(mode, start_step)
    for i, (results, success) in enumerate(trials):
        for n in range(1, len(results) + 1):
            rule.assess_trial(f"t{i}", results[:n])
        rule.trial_end(f"t{i}", success)
    for n in range(1, len(history) + 1):
        verdict = rule.assess_trial("new", history[:n])
        assert verdict is expected(trials, history[:n], mode, start_step)
        assert (rule.reason is None) == (verdict is GOOD)


def trained(mode: str, *curves: list[float]) -> MedianstopAssessor:
    rule = MedianstopAssessor(mode)
    for i, curve in enumerate(curves):
        rule.assess_trial(f"t{i}", curve)
        rule.trial_end(f"t{i}", True)
    return rule


def test_reason_when_maximising() -> None:
    rule = trained("maximize", *([0.86] * 5 for _ in range(12)))
    assert rule.assess_trial("x", [0.1, 0.2, 0.81, 0.4, 0.5]) is BAD
    assert rule.reason == "0.81 is below the median 0.86 of 12 trials after 5 results"


def test_reason_when_minimising() -> None:
    rule = trained("minimize", [1.0], [2.0], [3.0])
    assert rule.assess_trial("x", [2.5]) is BAD
    assert rule.reason == "2.5 is above the median 2 of 3 trials after 1 result"


def test_reason_shows_the_difference_of_close_values() -> None:
    rule = trained("maximize", [0.86])
    assert rule.assess_trial("x", [0.8599999999]) is BAD
    assert rule.reason == "0.8599999999 is below the median 0.86 of 1 trial after 1 result"


def test_reason_is_gone_after_a_good_verdict() -> None:
    rule = trained("maximize", [0.5])
    rule.assess_trial("bad", [0.1])
    rule.assess_trial("good", [0.9])
    assert rule.reason is None


def test_equal_to_the_median_continues() -> None:
    assert trained("maximize", [0.5]).assess_trial("x", [0.5]) is GOOD


def test_even_counts_take_the_lenient_middle() -> None:
    assert trained("maximize", [1.0], [2.0]).assess_trial("x", [1.5]) is GOOD
    assert trained("minimize", [1.0], [2.0]).assess_trial("x", [1.5]) is GOOD


def test_only_nan_is_worse_than_any_number() -> None:
    rule = trained("minimize", [1e9])
    assert rule.assess_trial("x", [math.nan]) is BAD
    assert rule.reason == "no finite number is above the median 1e+09 of 1 trial after 1 result"


def test_one_nan_does_not_hide_a_good_value() -> None:
    assert trained("maximize", [0.5, 0.5]).assess_trial("x", [math.nan, 0.6]) is GOOD


def test_a_finished_trial_with_nan_counts_as_the_worst() -> None:
    rule = trained("maximize", [math.nan, 1.0])
    assert rule.assess_trial("x", [-1e9, -1e9]) is GOOD


def test_failed_trials_are_not_compared_with() -> None:
    rule = MedianstopAssessor("maximize")
    rule.assess_trial("t", [0.9])
    rule.trial_end("t", success=False)
    assert rule.assess_trial("x", [0.1]) is GOOD


def test_start_step_is_the_first_judged() -> None:
    rule = MedianstopAssessor("maximize", start_step=3)
    rule.assess_trial("t", [0.9] * 5)
    rule.trial_end("t", True)
    verdicts = [rule.assess_trial("x", [0.1] * n) for n in (1, 2, 3)]
    assert verdicts == [GOOD, GOOD, BAD]


def test_a_new_attempt_replaces_the_old_results() -> None:
    rule = trained("maximize", [0.5, 0.5])
    rule.assess_trial("x", [0.9])
    assert rule.assess_trial("x", [0.1]) is BAD


def test_a_report_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        MedianstopAssessor().assess_trial("x", ["abc"])
