"""Evolution: it conforms, and children are parents with one change."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.tuners import EvolutionTuner

from .searches import search, started, suite

TestEvolution = suite(
    lambda seed, mode: EvolutionTuner(mode, population_size=6, seed=seed), trials=24, many_results=500
)
SPACE: dict[str, Any] = {name: {"_type": "uniform", "_value": [0, 1]} for name in "abcd"} | {
    "k": {"_type": "choice", "_value": [1, 2, 3]}
}
PARENT: dict[str, Any] = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "k": 2}


def made(optimize_mode: str, population_size: int) -> EvolutionTuner:
    return started(EvolutionTuner(optimize_mode, population_size=population_size, seed=0), SPACE)


def test_a_child_differs_in_one_parameter() -> None:
    tuner = made("minimize", 2)
    tuner.import_data([{"parameter": PARENT, "value": 1.0}] * 2)
    children = [tuner.generate_parameters(i) for i in range(60)]
    changes = [[name for name in PARENT if child[name] != pytest.approx(PARENT[name])] for child in children]
    assert {len(changed) for changed in changes} == {1}
    assert {changed[0] for changed in changes} == set(PARENT)


def test_the_population_keeps_its_size_and_gets_better() -> None:
    tuner, sums = made("maximize", 5), []
    for first, count in ((0, 6), (6, 114)):
        search(tuner, lambda point: sum(point[name] for name in "abcd"), count, first)
        sums.append(sum(tuner._loss_of(place) for place in range(len(tuner._members))))
    assert len(tuner._members) == 5
    assert sums[1] < sums[0] - 3


def test_failures_do_not_enter_the_population() -> None:
    tuner = made("maximize", 3)
    for i in range(20):
        tuner.generate_parameters(i)
        tuner.trial_end(i, False)
    assert tuner._members == []


def test_the_first_suggestions_are_random_however_many_run() -> None:
    assert len(made("maximize", 4).generate_multiple_parameters(list(range(50)))) == 50
