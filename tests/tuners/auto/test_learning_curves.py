"""What is made of the intermediate results of trials that were stopped or still run."""

from __future__ import annotations

import math

import pytest

from pitchpipe.tuners import AutoTuner
from pitchpipe.tuners.auto.learning_curves import LearningCurves

from ..searches import LINE, started


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
