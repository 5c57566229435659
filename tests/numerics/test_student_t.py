"""Means of repeats, their intervals, and what is clearly worse."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.numerics.student_t import interval, is_clearly_worse, mean

# 97.5 % quantiles of Student's t distribution, from its tables.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 30: 2.042, 100: 1.984}


@pytest.mark.parametrize(("freedom", "quantile"), TABLE.items())
def test_interval_is_that_of_students_t(freedom: int, quantile: float) -> None:
    values = [float(number) for number in range(freedom + 1)]
    deviation = math.sqrt(sum((value - freedom / 2) ** 2 for value in values) / freedom)
    expected = quantile * deviation / math.sqrt(freedom + 1)
    assert interval(values) == pytest.approx(expected, rel=2e-3)


MOST = sys.float_info.max
RESULTS = st.lists(st.floats(allow_nan=False), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("values", "middle", "half"),
    [
        ([MOST, MOST, MOST], MOST, 0.0),
        ([MOST, 0.0], MOST / 2, None),  # wider than any float
        ([1.5e308, 1.6e308, 1.7e308], 1.6e308, 0.1e308 * TABLE[2] / math.sqrt(3)),
        ([-1e200, 1e200], 0.0, 1e200 * TABLE[1]),
        ([1e-200, 3e-200], 2e-200, 1e-200 * TABLE[1]),
        ([MOST, -MOST, 1.0], 1 / 3, None),
        ([-MOST, math.inf, -MOST], math.inf, None),
    ],
)
def test_mean_and_interval_of_extreme_results(values: list[float], middle: float, half: float | None) -> None:
    assert mean(values) == pytest.approx(middle)
    assert interval(values) == (None if half is None else pytest.approx(half, rel=1e-3))


@given(RESULTS, RESULTS)
def test_results_of_any_size_can_be_compared(losses: list[float], best: list[float]) -> None:
    middle, half = mean(losses), interval(losses)
    assert math.isnan(middle) or min(losses) <= middle <= max(losses)
    assert half is None or 0 <= half < math.inf
    assert not (is_clearly_worse(losses, best) and is_clearly_worse(best, losses))


def test_interval_of_a_single_or_infinite_result_is_unknown() -> None:
    assert interval([1.0]) is None
    assert interval([1.0, math.inf]) is None
    assert interval([2.0, 2.0]) == 0.0


def test_mean_of_infinities() -> None:
    assert mean([1.0, math.inf]) == math.inf
    assert math.isnan(mean([math.inf, -math.inf]))


@pytest.mark.parametrize(
    ("losses", "best", "is_worse"),
    [
        ([0.5, 0.6], [0.1, 0.2, 0.3], True),
        ([0.25, 0.45], [0.1, 0.2, 0.3], False),  # too noisy to tell
        ([0.0, 0.1], [0.1, 0.2, 0.3], False),
        ([0.3, 0.3], [0.2, 0.2, 0.2], True),  # no noise: any difference counts
        ([0.2, 0.2], [0.2, 0.2, 0.2], False),
        ([0.9], [0.1], False),  # nothing is known of the noise
        ([math.inf, 0.1], [0.1, 0.2], True),
        ([0.1, 0.2], [math.inf, 0.2], False),
        ([MOST, MOST], [-MOST, -MOST], True),
        ([1e200, 1.1e200], [1.0, 2.0], True),
        ([MOST, 1.0, 1.0], [1.0, 2.0], False),  # one run of three diverged
        ([MOST, MOST, -MOST], [-MOST, MOST, -MOST], False),
        ([3e-200, 3.1e-200], [1e-200, 1.1e-200], True),
    ],
)
def test_clearly_worse(losses: list[float], best: list[float], is_worse: bool) -> None:
    assert is_clearly_worse(losses, best) is is_worse


def test_t_test_by_hand() -> None:
    # Means 5 and 2, both with the variance 1: t = 3 / sqrt(1/2 + 1/2) = 3, and 2.92 is the 95 % quantile for 2.
    deviation = math.sqrt(0.5)
    pair = [-deviation, deviation]
    assert is_clearly_worse([5 + one for one in pair], [2 + one for one in pair])
    assert not is_clearly_worse([4.91 + one for one in pair], [2 + one for one in pair])
