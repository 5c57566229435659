"""CMA-ES: it conforms, beats random search, continues exactly from a pickle, and restarts."""

from __future__ import annotations

from typing import Any

import cloudpickle
import numpy as np
import pytest

from pitchpipe.tuners import CMAESTuner, Tuner
from pitchpipe.tuners.comparison import TASKS, advantage
from pitchpipe.tuners.conformance import TunerConformance, run

BOX: dict[str, Any] = {name: {"_type": "uniform", "_value": [-5, 5]} for name in "abcd"}


class TestCMAES(TunerConformance):
    trials = 12
    many_results = 100

    def make(self, seed: int) -> Tuner:
        return CMAESTuner(population_size=4, seed=seed)

    def make_directed(self, seed: int, optimize_mode: str) -> Tuner:
        return CMAESTuner(optimize_mode, seed=seed)


@pytest.mark.parametrize("task", TASKS)
def test_it_beats_random_search(task: str) -> None:
    assert advantage(lambda seed: CMAESTuner(seed=seed), TASKS[task], trials=100)[1] < 0


def started(space: dict[str, Any], **arguments: Any) -> CMAESTuner:
    tuner = CMAESTuner(seed=0, **arguments)
    tuner.update_search_space(space)
    return tuner


def rosenbrock(point: dict[str, Any]) -> float:
    x = np.array([point[name] / 2 for name in "abcd"])
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def results(tuner: Tuner, count: int, first: int = 0) -> list[float]:
    values = []
    for i in range(first, first + count):
        point = tuner.generate_parameters(i)
        values.append(rosenbrock(point))
        tuner.receive_trial_result(i, point, values[-1])
    return values


def test_it_follows_a_curved_valley() -> None:
    assert min(results(started(BOX), 1500)) < 1e-6


def test_a_pickle_continues_exactly_through_generations() -> None:
    tuner = started(BOX)
    results(tuner, 75)  # in the middle of a generation of eight
    restored = cloudpickle.loads(cloudpickle.dumps(tuner))
    assert results(restored, 60, 75) == results(tuner, 60, 75)


def test_it_restarts_with_twice_the_population() -> None:
    tuner = started(BOX, population_size=5)
    for i in range(600):
        point = tuner.generate_parameters(i)
        tuner.receive_trial_result(i, point, 1.0)  # flat: there is nothing to find here
    assert tuner._searches >= 1
    assert tuner._current().population_size == 5 * 2**tuner._searches
    endless = started(BOX, population_size=5, restart=None)
    run(endless, 300)
    assert endless._searches == 0


def test_it_starts_at_the_best_known_point() -> None:
    tuner = started(BOX, sigma=0.01)
    known = dict(zip("abcd", (1.0, -2.0, 3.0, 4.0), strict=True))
    tuner.import_data(
        [{"parameter": dict.fromkeys("abcd", 0.0), "value": 2.0}, {"parameter": known, "value": 1.0}]
    )
    point = tuner.generate_parameters(0)
    assert all(abs(point[name] - known[name]) < 0.5 for name in "abcd")


def test_a_result_of_an_earlier_search_does_not_count() -> None:
    tuner = started(BOX, population_size=4)
    late = tuner.generate_parameters(0)
    tuner._searches += 1
    tuner.receive_trial_result(0, late, 1.0)
    assert tuner._generation == []
