"""How Auto expects unfinished trials to end and where others to fail, and what it takes from earlier searches."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import AutoTuner
from pitchpipe.tuners.auto.model import Settings
from pitchpipe.tuners.auto.side_models import EarlierSearches, FailureModel, LearningCurves
from pitchpipe.tuners.base.embedding import Embedding

from ..searches import LINE, search, started

UNIT = {"_type": "uniform", "_value": [0, 1]}
SPACE: dict[str, Any] = {"x": UNIT, "y": UNIT}
LOG_HALF = np.log(0.5)


def reported(*curves: list[float]) -> LearningCurves:
    """Curves of rows 0, 1, 2 and so on."""
    result = LearningCurves()
    for row, losses in enumerate(curves):
        for stage, loss in enumerate(losses, 1):
            result.note(row, stage, loss)
    return result


def losses_of(curves: LearningCurves, finals: dict[int, float] | None = None) -> dict[int, float]:
    stage = curves.comparable(finals or {})
    return dict(zip(stage.rows.tolist(), stage.losses.tolist(), strict=True))


def test_early_values_are_carried_over_by_the_median_change_of_those_that_went_further() -> None:
    curves = reported([5.0, 4.0, 3.5], [6.0, 4.0, 3.0], [7.0, 6.5], [9.0])
    # Into stage 2: -1, -2, -0.5; into stage 3: -0.5, -1.
    assert losses_of(curves) == {0: 3.5, 1: 3.0, 2: 5.75, 3: 7.25}


def test_final_results_count_as_they_are() -> None:
    curves = reported([5.0, 4.0], [6.0, 5.0], [7.0])
    # To the end: +0.5 for the one that has come to it, which then holds for the others as well.
    assert losses_of(curves, {0: 4.5}) == {0: 4.5, 1: 5.5, 2: 6.5}
    assert losses_of(curves, {0: 4.5, 7: 1.0})[7] == 1.0
    assert curves.unfinished == 2


def test_the_best_so_far_is_what_counts() -> None:
    assert losses_of(reported([5.0, 3.0, 4.0], [6.0, 4.0, 9.0])) == {0: 3.0, 1: 4.0}


def test_values_that_are_not_finite_are_passed_over() -> None:
    curves = reported([5.0, math.inf, 4.0], [math.inf, math.inf])
    assert losses_of(curves) == {0: 4.0}
    assert len(curves) == 1


def test_known_results_are_not_learned_again() -> None:
    curves = reported([5.0, 4.0], [6.0, 5.0])
    curves.note(0, 1, 1.0)
    assert losses_of(curves) == {0: 4.0, 1: 5.0}


def test_trial_that_failed_is_forgotten() -> None:
    curves = reported([5.0, 4.0], [6.0])
    curves.forget(1)
    curves.forget(9)
    assert losses_of(curves) == {0: 4.0}


def test_nothing_is_known_of_nothing() -> None:
    assert len(LearningCurves().comparable({}).rows) == 0


@pytest.mark.parametrize("last", [33, 40, 100])
def test_long_curves_keep_the_best_of_what_is_not_kept(last: int) -> None:
    curves = LearningCurves()
    for stage in range(1, last + 1):
        curves.note(0, stage, float(last - stage))
        curves.note(1, stage, float(2 * last - stage))
    assert losses_of(curves) == {0: 0.0, 1: float(last)}
    assert len(curves._changes) < 31 + 4 * math.log2(last / 32 + 1) + 1


def test_order_of_equal_early_values_is_kept() -> None:
    curves = reported(*([5.0 + row, 4.0 + row / 2] for row in range(8)), [20.0], [30.0])
    scaled = losses_of(curves)
    assert scaled[8] < scaled[9]
    assert scaled[9] - scaled[8] == 10.0  # no slope: differences are as they were


# ----------------------------------------------------------------------------------------- what Auto makes of it


def test_auto_tells_stopped_trials_from_failed_and_finished_ones() -> None:
    tuner = started(AutoTuner("maximize", seed=1), LINE)
    for i in range(4):
        point = tuner.generate_parameters(i)
        for sequence in range(3 if i == 0 else 2):
            tuner.receive_intermediate_result(
                i, point, 10.0 - i + sequence, trial_job_id=f"t{i}", sequence=sequence
            )
    tuner.receive_trial_result(0, {}, 12.0)
    tuner.trial_end(0, True)
    tuner.trial_stopped(1)
    tuner.trial_end(1, False)
    tuner.trial_end(2, False)  # it failed; the last one runs
    known = tuner._known()
    assert known.rows.tolist() == [0, 1, 3, 2]
    assert known.losses.tolist() == [-12.0, -11.0, -9.0, math.inf]  # trials that continue gain one more


def test_auto_with_curves_finds_what_is_best_in_the_end() -> None:
    tuner = started(AutoTuner("minimize", seed=3), LINE)
    for i in range(40):
        point = tuner.generate_parameters(i)
        for sequence in range(1 if i % 3 else 9):
            loss = (point["x"] - 0.7) ** 2 + 1 / (sequence + 1)
            tuner.receive_intermediate_result(i, point, loss, trial_job_id=f"t{i}", sequence=sequence)
        if i % 3:
            tuner.trial_stopped(i)
        else:
            tuner.receive_trial_result(i, point, (point["x"] - 0.7) ** 2)
        tuner.trial_end(i, i % 3 == 0)
    assert abs(float(tuner._history.units(tuner._known().rows[:1])[0, 0]) - 0.7) < 0.02


def test_auto_learns_each_objective_of_stopped_trials() -> None:
    """Where stopped trials promised good results in both objectives, it looks on; where they did not, it does not."""

    def suggestions(promise: float) -> list[float]:
        goals = [{"name": name, "direction": "minimize"} for name in ("error", "cost")]
        tuner = started(AutoTuner(seed=3), LINE, objectives=goals)
        found: list[float] = []
        for i in range(30):
            point = tuner.generate_parameters(i)
            found.append(point["x"])
            level = 0.4 + point["x"] if point["x"] < 0.5 else promise
            report = {"error": level, "cost": level}
            tuner.receive_intermediate_result(i, point, report, trial_job_id=f"t{i}", sequence=0)
            if point["x"] < 0.5:
                tuner.receive_trial_result(i, point, report)
            else:
                tuner.trial_stopped(i)
            tuner.trial_end(i, point["x"] < 0.5)
        return found

    right = [sum(x >= 0.5 for x in suggestions(promise)[10:]) for promise in (0.1, 3.0)]
    assert right[0] > right[1] + 5


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
