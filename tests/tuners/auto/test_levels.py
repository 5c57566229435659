"""Plateaus of metrics with few levels: how they are recognised, and how `Auto` leaves them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.tuners.auto import AutoTuner
from pitchpipe.tuners.auto.tuner import plateau_size

from ..searches import started

LEVELS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


@given(LEVELS, st.integers(0, 5))
def test_losses_of_the_best_level_are_counted(levels: list[int], failures: int) -> None:
    losses = np.array([*sorted(levels), *[math.inf] * failures])
    near = sorted(set(levels))[:6]
    widest = max(np.diff(near), default=0)
    best = [one for one in near if all(b - a < widest / 4 for a, b in pairwise(near) if b <= one)]
    counts = [levels.count(one) for one in best]
    assert plateau_size(losses) == (sum(counts) if max(counts) >= sum(counts) / 2 else 0)
    assert plateau_size(losses * 0.125 - 3) == plateau_size(losses)


def test_values_of_unequal_folds_are_one_level() -> None:
    in_28, in_29 = 1 / 28 / 5, 1 / 29 / 5
    losses = [2 * in_28 + in_29, in_28 + 2 * in_29, in_28 + 2 * in_29, 4 * in_28, 4 * in_28, 4 * in_28]
    assert plateau_size(np.sort(losses)) == 3


def test_values_that_are_close_but_not_equal_are_no_plateau() -> None:
    assert plateau_size(np.array([1.0, 1.1, 1.2, 1.3, 9.0])) == 0


@pytest.mark.parametrize("losses", [[], [math.inf, math.inf]])
def test_without_results_there_is_no_level(losses: list[float]) -> None:
    assert plateau_size(np.array(losses)) == 0


def suggested(share: float, plateau: int, count: int = 40, objectives: tuple[str, ...] = ()) -> list[float]:
    """Return how far to the right suggestions are; in that half, results are worse and all different."""
    tuner = AutoTuner(seed=1)
    tuner.settings = replace(tuner.settings, plateau_share=share)
    goals = [{"name": name, "direction": "minimize"} for name in objectives]
    started(tuner, {name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}, objectives=goals)
    rng = np.random.default_rng(1)
    for number in range(50):
        x, y = rng.random(2) / 2
        is_equal = number < plateau
        value = 1.0 if is_equal else 2 + y
        results = dict.fromkeys(objectives, value) if objectives else value
        tuner.import_data([{"parameter": {"x": x if is_equal else x + 0.5, "y": 2 * y}, "value": results}])
    return [tuner.generate_parameters(number)["x"] for number in range(count)]


def beyond_the_plateau(share: float, plateau: int) -> float:
    """Return the share of suggestions in the half of the space that has worse results."""
    return float(np.mean(np.array(suggested(share, plateau)) > 0.5))


def test_wide_plateau_is_left_at_random() -> None:
    assert 0.35 < beyond_the_plateau(0.25, 30) < 0.65
    assert beyond_the_plateau(1.0, 30) < 0.3


def test_narrow_plateau_and_several_objectives_are_left_to_the_model() -> None:
    assert beyond_the_plateau(0.25, 12) < 0.35
    once, never = (suggested(share, 30, 10, ("a", "b")) for share in (0.25, 1.0))
    assert once == never
