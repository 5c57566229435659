"""What tuners that learn share: results are recorded at once, and ranked when needed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pitchpipe import tuners
from pitchpipe.numerics import Floats
from pitchpipe.tuners.base.learning_tuner import LearningTuner, latin_hypercube

SPACE: dict[str, Any] = {
    "x": {"_type": "uniform", "_value": [0, 1]},
    "c": {"_type": "choice", "_value": ["a", "b"]},
}


def calls_of_a_result(tuner: tuners.Tuner, parameter_id: int) -> int:
    """Return how many functions are called to take one result."""
    point = tuner.generate_parameters(parameter_id)
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        tuner.receive_trial_result(parameter_id, point, 0.5)
    finally:
        sys.setprofile(None)
    return count


# Short trainings and small forests: only the cost of a result counts here.
QUICK: dict[str, dict[str, Any]] = {"DNGO": {"num_epochs_per_training": 2}, "SMAC": {"trees": 2}}


@pytest.mark.parametrize(
    "name",
    ["Anneal", "DNGO", "Evolution", "GP", "GridSearch", "Metis", "NSGA", "QMC", "Random", "SMAC", "TPE"],
)
def test_a_result_costs_the_same_however_many_there_are(name: str) -> None:
    tuner = tuners.create(name, **QUICK.get(name, {}))
    tuner.update_search_space(SPACE)
    rng = np.random.default_rng(0)
    costs = []
    for count in (100, 600):
        points = [{"x": x, "c": "a"} for x in rng.random(count)]
        tuner.import_data([{"parameter": point, "value": point["x"]} for point in points])
        tuner.generate_parameters(0)
        costs.append(min(calls_of_a_result(tuner, parameter_id) for parameter_id in range(count, count + 4)))
    assert costs[1] <= costs[0]


class Scripted(LearningTuner):
    """Proposes the vectors of a script."""

    script: tuple[list[float], ...] = ()

    def _proposals(self) -> Iterator[Floats]:
        yield from (np.array(vector) for vector in self.script)


def started(*script: list[float], mode: str = "minimize", constraints: tuple[str, ...] = ()) -> Scripted:
    tuner = Scripted(mode, seed=0)
    tuner.script = script
    tuner.update_constraints(constraints)
    tuner.update_search_space({name: {"_type": "randint", "_value": [0, 4]} for name in "ab"})
    return tuner


def test_the_first_proposal_that_is_new_and_allowed_is_taken() -> None:
    tuner = started([0.1, 0.1], [0.9, 0.1], [0.1, 0.9], constraints=("a <= b",))
    points = [tuner.generate_parameters(i) for i in range(3)]
    assert points[:2] == [{"a": 0, "b": 0}, {"a": 0, "b": 3}]
    assert points[2] not in points[:2]
    assert points[2]["a"] <= points[2]["b"]


def test_a_point_that_differs_by_a_rounding_error_is_not_new() -> None:
    tuner = started()
    tuner.update_search_space({"x": {"_type": "normal", "_value": [0, 1]}})
    tuner.import_data([{"parameter": {"x": 1 / 3}, "value": 0.0}])
    tuner.script = tuple(
        tuner._explored.space.encode({"x": x}).tolist()  # type: ignore[union-attr]
        for x in (1 / 3, math.nextafter(1 / 3, 1), 0.5)
    )
    assert tuner.generate_parameters(0)["x"] == pytest.approx(0.5)


@pytest.mark.parametrize(("mode", "best"), [("minimize", 1), ("maximize", 0)])
def test_failures_and_nan_are_the_worst_in_either_direction(mode: str, best: int) -> None:
    tuner = started(mode=mode)
    points = [tuner.generate_parameters(i) for i in range(5)]
    for i, value in enumerate([7.0, -2.0, math.nan]):
        tuner.receive_trial_result(i, points[i], value)
    tuner.trial_end(3, False)
    history = tuner._history
    assert history.ranked[0] == best
    assert [history.loss(row) for row in (2, 3)] == [math.inf, math.inf]
    assert tuner._running_rows().tolist() == [4]


@pytest.mark.parametrize(
    ("cause", "losses"),
    [("OOM", [math.inf]), ("", [math.inf]), ("INFRA", []), ("USER_CANCELED", []), ("SYS_CANCELED", [])],
)
def test_what_does_not_depend_on_the_parameters_is_not_learned(cause: str, losses: list[float]) -> None:
    tuner = started()
    point = tuner.generate_parameters(0)
    tuner.trial_end_cause(0, cause)
    tuner.trial_end(0, False)
    assert tuner._history.losses.tolist() == losses
    assert tuner._running_rows().tolist() == []
    assert tuner.generate_parameters(1) != point


def test_failed_starting_point_is_the_worst_and_not_suggested() -> None:
    tuner = started([0.9, 0.9])
    point = started([0.9, 0.9]).generate_parameters(0)
    tuner.starting_point_failed(point, "OOM")
    assert tuner._history.losses.tolist() == [math.inf]
    assert tuner.generate_parameters(0) != point
    tuner.starting_point_failed(point, "INFRA")
    tuner.starting_point_failed({"a": "outside"}, "OOM")
    assert tuner._history.losses.tolist() == [math.inf]


def test_result_of_a_retried_starting_point_replaces_its_failure() -> None:
    tuner = started([0.9, 0.9])
    point = started([0.9, 0.9]).generate_parameters(0)
    tuner.starting_point_failed(point, "OOM")
    tuner.import_data([{"parameter": point, "value": 0.5}])
    assert (tuner._history.losses.tolist(), tuner._failed) == ([0.5], {})


def test_results_of_another_space_are_kept_where_they_fit() -> None:
    tuner = started([0.9, 0.9], [0.1, 0.1])
    for i in range(2):
        tuner.receive_trial_result(i, tuner.generate_parameters(i), float(i))
    tuner.update_search_space({name: {"_type": "randint", "_value": [0, 2]} for name in "ab"})
    assert tuner._history.losses.tolist() == [1.0]


def test_a_latin_hypercube_has_one_point_in_each_stratum() -> None:
    points = latin_hypercube(np.random.default_rng(0), 16, 3)
    assert (np.sort(np.floor(points * 16), axis=0) == np.arange(16)[:, None]).all()
