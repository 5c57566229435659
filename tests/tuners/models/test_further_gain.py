"""The expected gain: near the true regret, smaller as the search finds more, and aware of noise and limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.base import Embedding
from pitchpipe.tuners.models import expected_gain
from pitchpipe.tuners.models.further_gain import Outlook

CENTRE = np.array([0.3, 0.7])
EMBEDDING = Embedding.of(SearchSpace.parse({name: {"_type": "uniform", "_value": [0, 1]} for name in "xy"}))


def bowl(units: np.ndarray) -> np.ndarray:
    return ((units - CENTRE) ** 2).sum(axis=1)


def points(count: int, seed: int = 0) -> np.ndarray:
    """Random points, half of them drawn towards the best one as a search would."""
    rng = np.random.default_rng(seed)
    units = rng.random((count, 2))
    units[1::2] = np.clip(CENTRE + 0.15 * rng.standard_normal((count // 2, 2)), 0, 1)
    return units


def outlook(
    units: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray] = bowl,
    noise: float = 0.0,
    excesses: np.ndarray | None = None,
) -> Outlook:
    losses = function(units) + noise * np.random.default_rng(1).standard_normal(len(units))
    none = np.empty((len(units), 0))
    return expected_gain(EMBEDDING, units, losses, none if excesses is None else excesses)


@pytest.mark.parametrize("seed", range(4))
def test_gain_is_near_the_true_regret(seed: int) -> None:
    units = points(12, seed)
    assert 0.2 < outlook(units).gain / bowl(units).min() < 5.0


def test_gain_shrinks_as_the_search_finds_more() -> None:
    gains = [outlook(points(count)).gain for count in (8, 20, 60)]
    assert gains[0] > 2 * gains[1] > 4 * gains[2] > 0


def test_gain_has_the_unit_of_the_objective() -> None:
    units = points(15)
    plain, scaled = outlook(units), outlook(units, lambda at: 1000.0 * bowl(at) + 7.0)
    assert scaled.gain == pytest.approx(1000.0 * plain.gain, rel=1e-3)
    assert scaled.noise == pytest.approx(1000.0 * plain.noise, rel=1e-3)


def test_noise_is_estimated() -> None:
    assert outlook(points(80), noise=0.05).noise == pytest.approx(0.05, rel=0.4)
    assert outlook(points(80)).noise < 0.002


def test_only_points_that_keep_the_limits_can_be_gained() -> None:
    units = points(40)
    # The lowest losses are left of x = 0.3, where the limit is violated; the best feasible point is near the border.
    losses, excesses = (lambda at: at[:, 0]), 0.3 - units[:, :1]
    assert (excesses > 0).any()
    free, limited = outlook(units, losses), outlook(units, losses, excesses=excesses)
    assert limited.gain < 0.1
    best = units[excesses[:, 0] <= 0, 0].min()
    assert 0.2 * (best - 0.3) < limited.gain < 5 * (best - 0.3)
    assert free.gain < 0.05


def test_equal_results_promise_nothing() -> None:
    assert outlook(points(20), lambda at: np.full(len(at), 3.0)) == Outlook(0.0, 0.0)


def test_equal_arguments_have_equal_results_however_many_there_are() -> None:
    units = points(400)
    assert outlook(units, noise=0.01) == outlook(units, noise=0.01)
