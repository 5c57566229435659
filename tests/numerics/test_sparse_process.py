"""The small model of which parameters matter."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.numerics.sparse_process import Effects, differences

FEW = np.array([False, False, True])


def test_options_of_a_choice_differ_by_1_and_inactive_parameters_by_0() -> None:
    units = np.array([[0.2, np.nan, 0.25], [0.5, 0.5, 0.75]])
    found = differences(units, np.array([0.5, 0.5, 0.75]), FEW)
    np.testing.assert_allclose(found, [[0.3, 0, 1], [0, 0, 0]])


def test_parameters_without_an_effect_do_not_change_the_prediction() -> None:
    rng = np.random.default_rng(3)
    units = np.column_stack([rng.random((60, 2)), (rng.integers(0, 2, 60) + 0.5) / 2])
    targets = np.abs(units[:, 0] - 0.3) + 0.5 * (units[:, 2] > 0.5) + 0.01 * rng.normal(size=60)
    effects = Effects(units, targets, FEW)
    base, second, first, option = effects.predicted(
        np.array([[0.3, 0.2, 0.25], [0.3, 0.9, 0.25], [0.8, 0.2, 0.25], [0.3, 0.2, 0.75]])
    )
    assert second == base
    assert abs(first - base - 0.5) < 0.05
    assert abs(option - base - 0.5) < 0.05


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("count", "noise", "error"), [(30, 0.0, 0.02), (60, 0.06, 0.06)])
def test_small_effect_beside_a_large_one_is_found(count: int, noise: float, error: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    units = np.column_stack([rng.random((count, 2)), (rng.integers(0, 3, count) + 0.5) / 3])
    targets = 10 * (units[:, 0] - 0.5) ** 2 + 0.12 * (units[:, 2] > 0.7) + noise * rng.normal(size=count)
    effects = Effects(units, np.minimum(targets, 1 + np.log(np.maximum(targets, 1))), FEW)
    first, last = effects.predicted(np.array([[0.5, 0.5, 1 / 6], [0.5, 0.5, 5 / 6]]))
    assert abs(last - first - 0.12) < error


def test_equal_results_are_predicted() -> None:
    effects = Effects(np.random.default_rng(0).random((12, 3)), np.ones(12), FEW)
    np.testing.assert_allclose(effects.predicted(np.full((1, 3), 0.5)), [1.0])


@pytest.mark.parametrize("seed", range(4))
def test_parameters_below_a_choice_have_effects_of_their_own(seed: int) -> None:
    rng, count = np.random.default_rng(seed), 60
    svm = rng.random(count) < 0.5
    units = np.column_stack(
        [rng.random(count), np.where(svm, rng.random(count), np.nan), np.where(svm, 0.75, 0.25)]
    )
    targets = units[:, 0] + np.where(svm, np.nan_to_num(units[:, 1]), 0.5)
    effects = Effects(units, targets, FEW)
    points = np.array([[0.5, np.nan, 0.25], [0.5, 0.1, 0.75], [0.5, 0.9, 0.75]])
    np.testing.assert_allclose(effects.predicted(points), [1.0, 0.6, 1.4], atol=0.05)
