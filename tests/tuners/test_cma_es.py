"""CMA-ES: it conforms, continues exactly from a pickle, and restarts."""

from __future__ import annotations

from typing import Any

import cloudpickle
import numpy as np

from pitchpipe.testing import run
from pitchpipe.tuners import CMAESTuner

from .searches import search, started, suite

BOX: dict[str, Any] = {name: {"_type": "uniform", "_value": [-5, 5]} for name in "abcd"}


TestCMAES = suite(
    lambda seed, _: CMAESTuner(population_size=4, seed=seed),
    lambda seed, mode: CMAESTuner(mode, seed=seed),
    trials=12,
    many_results=100,
)


def made(**arguments: Any) -> CMAESTuner:
    return started(CMAESTuner(seed=0, **arguments), BOX)


def rosenbrock(point: dict[str, Any]) -> float:
    x = np.array([point[name] / 2 for name in "abcd"])
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def test_it_follows_a_curved_valley() -> None:
    assert min(search(made(), rosenbrock, 1500)) < 1e-6


def test_a_pickle_continues_exactly_through_generations() -> None:
    tuner = made()
    search(tuner, rosenbrock, 75)  # in the middle of a generation of eight
    restored = cloudpickle.loads(cloudpickle.dumps(tuner))
    assert search(restored, rosenbrock, 60, 75) == search(tuner, rosenbrock, 60, 75)


def test_it_restarts_with_twice_the_population() -> None:
    tuner = made(population_size=5)
    search(tuner, lambda point: 1.0, 600)  # flat: there is nothing to find here
    assert tuner._searches >= 1
    assert tuner._current().population_size == 5 * 2**tuner._searches
    endless = made(population_size=5, restart=None)
    run(endless, 300)
    assert endless._searches == 0


def test_it_starts_at_the_best_known_point() -> None:
    tuner = made(sigma=0.01)
    known = dict(zip("abcd", (1.0, -2.0, 3.0, 4.0), strict=True))
    tuner.import_data(
        [{"parameter": dict.fromkeys("abcd", 0.0), "value": 2.0}, {"parameter": known, "value": 1.0}]
    )
    point = tuner.generate_parameters(0)
    assert all(abs(point[name] - known[name]) < 0.5 for name in "abcd")


def test_a_result_of_an_earlier_search_does_not_count() -> None:
    tuner = made(population_size=4)
    late = tuner.generate_parameters(0)
    tuner._searches += 1
    tuner.receive_trial_result(0, late, 1.0)
    assert tuner._generation == []
