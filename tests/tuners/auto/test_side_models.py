"""Where Auto expects trials to fail, and what it takes from earlier searches: as much as they rank the new results."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import AutoTuner
from pitchpipe.tuners.auto.model import Settings
from pitchpipe.tuners.auto.side_models import EarlierSearches, FailureModel
from pitchpipe.tuners.base.embedding import Embedding

from ..searches import LINE, search, started

UNIT = {"_type": "uniform", "_value": [0, 1]}
SPACE: dict[str, Any] = {"x": UNIT, "y": UNIT}
LOG_HALF = np.log(0.5)


def model() -> FailureModel:
    return FailureModel(Embedding.of(SearchSpace.parse(SPACE)), Settings())


def points(count: int) -> Any:
    return np.random.default_rng(4).random((count, 2))


def test_each_kind_has_a_region_of_its_own() -> None:
    units = points(60)
    kinds = ["OOM" if x > 0.7 else "NAN" if y < 0.3 else None for x, y in units]
    found = model()
    found.learn(units, kinds, 60)
    memory, diverged, good = found.log_success(np.array([[0.9, 0.8], [0.2, 0.1], [0.3, 0.7]]))
    assert memory < LOG_HALF
    assert diverged < LOG_HALF
    assert good > np.log(0.9)


def test_failure_that_others_do_not_confirm_is_chance() -> None:
    units = np.concatenate([points(50), [[0.3, 0.5]]])
    kinds = ["OOM" if x > 0.7 else None for x, _ in units[:-1]] + ["OOM"]
    confirmed = model().learn(units, kinds, 51)
    assert not confirmed[-1]
    assert confirmed[:-1].sum() >= 0.8 * (units[:-1, 0] > 0.7).sum()
    assert not confirmed[[kind is None for kind in kinds]].any()


@pytest.mark.parametrize("kinds", [["USER_ERROR"] * 10, [None] * 10])
def test_trials_that_all_end_alike_say_nothing(kinds: list[str | None]) -> None:
    found = model()
    assert not found.learn(points(10), kinds, 10).any()
    assert found.log_success(points(3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "objectives",
    [
        [{"direction": "minimize"}],
        [{"name": "loss", "direction": "minimize"}, {"name": "gain", "direction": "maximize"}],
        [{"name": "loss", "direction": "minimize"}, {"name": "ms", "constraint": "<= 0.9"}],
    ],
)
def test_region_where_trials_die_is_left_though_the_objective_is_best_there(objectives: Any) -> None:
    tuner = started(AutoTuner(seed=3), SPACE, objectives=objectives)
    names = [one.get("name", "default") for one in objectives]
    failed = []
    for i in range(45):
        point = tuner.generate_parameters(i)
        failed.append(point["x"] > 0.5)
        if failed[-1]:
            tuner.trial_end_cause(i, "OOM")
            tuner.trial_end(i, False)
            continue
        report = dict(zip(names, (1 - point["x"] + point["y"] ** 2, point["y"]), strict=False))
        tuner.receive_trial_result(i, point, report)
    assert sum(failed[25:]) <= 8


def test_small_changes_of_the_best_trials_avoid_the_region() -> None:
    tuner = AutoTuner(seed=3)
    tuner.settings = Settings(model_free_share=1.0)
    started(tuner, SPACE)
    failed = []
    for i in range(60):
        point = tuner.generate_parameters(i)
        failed.append(point["x"] > 0.5)
        if failed[-1]:
            tuner.trial_end(i, False)
        else:
            tuner.receive_trial_result(i, point, 0.5 - point["x"])
    assert sum(failed[20:]) <= 10


def test_nothing_changes_without_failures() -> None:
    suggested = []
    for weighs in (True, False):
        tuner = AutoTuner(seed=3)
        tuner.settings = Settings(failure_model=weighs)
        search(started(tuner, SPACE), lambda point: point["x"], 15)
        suggested.append(tuner.generate_parameters(15))
    assert suggested[0] == suggested[1]


MIXED: dict[str, Any] = {
    **{f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(4)},
    "c": {"_type": "choice", "_value": ["a", "b", "c"]},
}
_BEST = {"a": 0.5, "b": 0.0, "c": 1.0}


def loss(point: dict[str, Any]) -> float:
    return sum((point[f"x{i}"] - 0.3 - 0.1 * i) ** 2 for i in range(4)) + 0.3 * _BEST[point["c"]]


def results(sign: float, source: int, count: int = 40) -> list[dict[str, Any]]:
    """Return results on a scale of their own; those with sign -1 mislead."""
    space, rng = SearchSpace.parse(MIXED), np.random.default_rng(source)
    points = [space.sample(rng) for _ in range(count)]
    return [{"parameter": point, "value": 50 + 9 * sign * loss(point), "source": source} for point in points]


def searches(*given: list[dict[str, Any]]) -> EarlierSearches:
    space = SearchSpace.parse(MIXED)
    return EarlierSearches(space, Embedding.of(space), [row for rows in given for row in rows])


def known(count: int) -> tuple[Any, Any]:
    """Return points and their losses, best first."""
    space, rng = SearchSpace.parse(MIXED), np.random.default_rng(9)
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
    tuner = started(AutoTuner(seed=seed), MIXED)
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
    tuner = started(AutoTuner(seed=0), MIXED)
    tuner.update_earlier(results(1, 0))
    search(started(tuner, LINE), lambda point: point["x"], 12)
