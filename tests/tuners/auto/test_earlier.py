"""Models of earlier searches count as much as they rank the new results; a useless one is ignored."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import AutoTuner
from pitchpipe.tuners.auto.side_models import EarlierSearches
from pitchpipe.tuners.base.embedding import Embedding

from ..searches import LINE, search, started

SPACE: dict[str, Any] = {
    **{f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(4)},
    "c": {"_type": "choice", "_value": ["a", "b", "c"]},
}
_BEST = {"a": 0.5, "b": 0.0, "c": 1.0}


def loss(point: dict[str, Any]) -> float:
    return sum((point[f"x{i}"] - 0.3 - 0.1 * i) ** 2 for i in range(4)) + 0.3 * _BEST[point["c"]]


def results(sign: float, source: int, count: int = 40) -> list[dict[str, Any]]:
    """Return results on a scale of their own; those with sign -1 mislead."""
    space, rng = SearchSpace.parse(SPACE), np.random.default_rng(source)
    points = [space.sample(rng) for _ in range(count)]
    return [{"parameter": point, "value": 50 + 9 * sign * loss(point), "source": source} for point in points]


def searches(*given: list[dict[str, Any]]) -> EarlierSearches:
    space = SearchSpace.parse(SPACE)
    return EarlierSearches(space, Embedding.of(space), [row for rows in given for row in rows])


def known(count: int) -> tuple[Any, Any]:
    """Return points and their losses, best first."""
    space, rng = SearchSpace.parse(SPACE), np.random.default_rng(9)
    points = sorted((space.sample(rng) for _ in range(count)), key=loss)
    return np.array([space.encode(point) for point in points]), np.array([loss(point) for point in points])


def test_weights_follow_the_agreement_and_fade() -> None:
    both = searches(results(1, 0), results(-1, 1))
    before = both.weights(np.empty((0, 5)), np.empty(0))
    assert before[0] == before[1] > 0
    few, many = both.weights(*known(10)), both.weights(*known(100))
    assert few[0] > many[0] > 0
    assert few[1] == many[1] == 0


def test_points_that_were_good_earlier_have_the_higher_score() -> None:
    one = searches(results(1, 0))
    units, losses = known(30)
    scores = one.bonus(one.weights(units, losses), units)
    assert np.corrcoef(scores, losses)[0, 1] < -0.8


def test_source_of_few_results_and_points_of_another_space_are_left_out() -> None:
    strange = [{"parameter": {"y": 1}, "value": 0.5, "source": 3}] * 9
    none = searches(results(1, 0, count=4), strange)
    assert len(none.weights(*known(10))) == 0
    assert not none.bonus(np.empty(0), known(10)[0]).any()


def best_after(count: int, seed: int, sign: float | None) -> float:
    tuner = started(AutoTuner(seed=seed), SPACE)
    if sign is not None:
        tuner.update_earlier(results(sign, 0))
    return min(search(tuner, loss, count))


def test_a_related_search_helps_and_a_misleading_one_costs_nothing() -> None:
    plain, related, misleading = (
        statistics.mean(best_after(14, seed, sign) for seed in range(3)) for sign in (None, 1.0, -1.0)
    )
    assert related < 0.7 * plain
    assert misleading == pytest.approx(plain, rel=0.5)


def test_models_are_made_again_for_another_space() -> None:
    tuner = started(AutoTuner(seed=0), SPACE)
    tuner.update_earlier(results(1, 0))
    search(started(tuner, LINE), lambda point: point["x"], 12)
