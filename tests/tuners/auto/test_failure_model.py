"""Where Auto expects trials to fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import AutoTuner
from pitchpipe.tuners.auto.model import Settings
from pitchpipe.tuners.auto.side_models import FailureModel
from pitchpipe.tuners.base.embedding import Embedding

from ..searches import search, started

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
