"""Evolution: it conforms, beats random search, and children are parents with one change."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.tuners import EvolutionTuner, Tuner
from pitchpipe.tuners.comparison import TASKS, advantage
from pitchpipe.tuners.conformance import TunerConformance


class TestEvolution(TunerConformance):
    trials = 24
    many_results = 500

    def make(self, seed: int) -> Tuner:
        return EvolutionTuner("minimize", population_size=6, seed=seed)

    def make_directed(self, seed: int, optimize_mode: str) -> Tuner:
        return EvolutionTuner(optimize_mode, population_size=4, seed=seed)


@pytest.mark.parametrize("task", TASKS)
def test_it_beats_random_search(task: str) -> None:
    make = lambda seed: EvolutionTuner("minimize", population_size=10, seed=seed)  # noqa: E731
    assert advantage(make, TASKS[task], trials=100)[1] < 0


SPACE: dict[str, Any] = {name: {"_type": "uniform", "_value": [0, 1]} for name in "abcd"} | {
    "k": {"_type": "choice", "_value": [1, 2, 3]}
}
PARENT: dict[str, Any] = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "k": 2}


def test_a_child_differs_in_one_parameter() -> None:
    tuner = EvolutionTuner("minimize", population_size=2, seed=0)
    tuner.update_search_space(SPACE)
    tuner.import_data([{"parameter": PARENT, "value": 1.0}] * 2)
    children = [tuner.generate_parameters(i) for i in range(60)]
    changes = [[name for name in PARENT if child[name] != pytest.approx(PARENT[name])] for child in children]
    assert {len(changed) for changed in changes} == {1}
    assert {changed[0] for changed in changes} == set(PARENT)


def test_the_population_keeps_its_size_and_gets_better() -> None:
    tuner = EvolutionTuner("maximize", population_size=5, seed=0)
    tuner.update_search_space(SPACE)
    sums = []
    for i in range(120):
        point = tuner.generate_parameters(i)
        tuner.receive_trial_result(i, point, sum(point[name] for name in "abcd"))
        if i in (5, 119):
            sums.append(sum(tuner._loss_of(place) for place in range(len(tuner._members))))
    assert len(tuner._members) == 5
    assert sums[1] < sums[0] - 3


def test_failures_do_not_enter_the_population() -> None:
    tuner = EvolutionTuner(population_size=3, seed=0)
    tuner.update_search_space(SPACE)
    for i in range(20):
        tuner.generate_parameters(i)
        tuner.trial_end(i, False)
    assert tuner._members == []


def test_the_first_suggestions_are_random_however_many_run() -> None:
    tuner = EvolutionTuner(population_size=4, seed=0)
    tuner.update_search_space(SPACE)
    assert len(tuner.generate_multiple_parameters(list(range(50)))) == 50
