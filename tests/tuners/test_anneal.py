"""Annealing: it conforms, and moves near the best, ever nearer."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.tuners import AnnealTuner

from .searches import LINE, started, suite

TestAnneal = suite(
    lambda seed, _: AnnealTuner(seed=seed),
    lambda seed, mode: AnnealTuner(mode, parallel_optimize=True, constant_liar_type="mean", seed=seed),
    trials=24,
    many_results=500,
)


@pytest.mark.parametrize(("results", "furthest"), [(10, 0.25), (90, 0.05)])
def test_the_neighbourhood_shrinks(results: int, furthest: float) -> None:
    tuner = started(AnnealTuner(seed=0), LINE)
    tuner.import_data([{"parameter": {"x": 0.4}, "value": 1.0}] * results)
    points = np.array([tuner.generate_parameters(i)["x"] for i in range(200)])
    # Half of 1 / (1 + 0.1 n) on either side, and points reach the ends.
    assert 0.9 * furthest < np.abs(points - 0.4).max() <= furthest + 1e-9


def test_the_best_trials_are_taken_most_often() -> None:
    tuner = started(AnnealTuner(seed=0), LINE)
    tuner.import_data([{"parameter": {"x": i / 100}, "value": float(i)} for i in range(101)])
    points = np.array([tuner.generate_parameters(i)["x"] for i in range(400)])
    # The neighbourhood is 0.09 wide; that the trial of rank above 20 is taken has a probability of 1e-6.
    assert points.max() < 0.25
    assert np.median(points) < 0.05


@pytest.mark.parametrize(("lie", "near"), [("min", True), ("max", False)])
def test_running_trials_count_as_good_or_bad_as_configured(lie: str, near: bool) -> None:
    tuner = started(AnnealTuner(parallel_optimize=True, constant_liar_type=lie, seed=0), LINE)
    tuner.import_data([{"parameter": {"x": 0.1}, "value": 1.0}] * 150)
    running = tuner.generate_multiple_parameters(list(range(3)))
    tuner._history.units(np.array(tuner._running_rows()))[:] = 0.9
    rows = tuner._best_rows()
    first = set(rows[:3].tolist()) == set(tuner._running_rows().tolist())
    assert (first, len(running)) == (near, 3)


def test_values_of_a_branch_come_from_trials_of_that_branch() -> None:
    space = {
        "m": {
            "_type": "choice",
            "_value": [{"_name": "a", "x": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "b"}],
        },
    }
    tuner = started(AnnealTuner(seed=0), space)
    tuner.import_data([{"parameter": {"m": {"_name": "b"}}, "value": 0.0}] * 30)
    tuner.import_data([{"parameter": {"m": {"_name": "a", "x": 0.8}}, "value": 5.0}] * 60)
    points = [tuner.generate_parameters(i)["m"] for i in range(50)]
    imported = [point["x"] for point in points if point["_name"] == "a"]
    # A few are random: that the other branch, a single point that is known, is drawn time and again.
    assert np.median(np.abs(np.array(imported) - 0.8)) < 0.07
