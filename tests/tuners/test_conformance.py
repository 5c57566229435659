"""The built-in tuners pass the conformance suite, and tuners with planted faults do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.testing import DIFFERENT, SPACES, TunerConformance
from pitchpipe.tuners import (
    AutoTuner,
    BatchTuner,
    GridSearchTuner,
    NoMoreTrialError,
    RandomTuner,
    TPETuner,
    Tuner,
)
from pitchpipe.tuners.auto.model import Settings

from .searches import suite


def quick_auto(seed: int, optimize_mode: str) -> Tuner:
    tuner = AutoTuner(optimize_mode, seed)
    tuner.settings = Settings(design_points=4, climbers=3, climb_rounds=1)
    return tuner


TestAuto = suite(quick_auto, trials=12, many_results=40)
TestRandom = suite(lambda seed, mode: RandomTuner(seed, mode))
TestGridSearch = suite(lambda seed, mode: GridSearchTuner(mode))
TestTPE = suite(lambda seed, mode: TPETuner(mode, seed), many_results=1_000)


@pytest.mark.parametrize("lie", ["best", "mean", None])
def test_tpe_with_other_lies_conforms(lie: str | None) -> None:
    liar = {"constant_liar_type": lie, "n_startup_jobs": 3}
    tests: Any = suite(lambda seed, _: TPETuner("maximize", seed, liar))()
    for space in map(SPACES.get, DIFFERENT):
        tests.test_results_in_another_order_than_suggestions(space)
        tests.test_nan_infinite_and_failed_trials_are_survived(space)


def batch(*options: Any) -> dict[str, Any]:
    return {"run": {"_type": "choice", "_value": list(options)}}


class TestBatch(TunerConformance):
    spaces: ClassVar[dict[str, Any]] = {
        "two": batch({"x": 1, "y": "a"}, {"x": 2}),
        "twenty": batch(*({"x": i, "y": [i, {"z": None}]} for i in range(20))),
    }
    small = (batch(*({"x": i} for i in range(6))), 6)
    corner = batch({"x": 0}, {"x": 1})
    constrained = (batch({"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 3}), ["a < b"])

    def make(self, seed: int) -> Tuner:
        return BatchTuner()

    def is_point(self, space: Any, parameters: Any) -> bool:
        return parameters in space["run"]["_value"]

    def test_constraints_are_met(self) -> None:
        space, constraints = self.constrained
        points = self.started(space, constraints=constraints).generate_multiple_parameters([0, 1, 2])
        assert points == [{"a": 1, "b": 2}, {"a": 3}]


class Faulty(Tuner):
    """A tuner that does nothing wrong by itself; its subclasses have one fault each."""

    def __init__(self, seed: int) -> None:
        self.inner = RandomTuner(seed)

    def update_search_space(self, search_space: Any) -> None:
        self.inner.constraints = self.constraints
        self.inner.update_search_space(search_space)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return self.inner.generate_parameters(parameter_id)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.inner.receive_trial_result(parameter_id, parameters, value)

    def import_data(self, data: list[Any]) -> None:
        self.inner.import_data(data)


class Mutates(Faulty):
    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        parameters.clear()


class Shares(Faulty):
    def update_search_space(self, search_space: Any) -> None:
        self.point = SearchSpace.parse(search_space).decode([0.5])

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return self.point


class ForgetsConstraints(Faulty):
    def update_constraints(self, constraints: Any) -> None:
        pass


class Unseeded(Faulty):
    def __init__(self, seed: int) -> None:
        super().__init__(None)  # type: ignore[arg-type]


class LeaksItsState(Faulty):
    def __getstate__(self) -> Any:
        return {"inner": RandomTuner(0)}

    def __setstate__(self, state: Any) -> None:
        self.inner = state["inner"]
        self.inner.update_search_space(SPACES["uniform"])


class Repeats(Faulty):
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return {"c": "a", "n": 0}


class IgnoresImports(Faulty):
    def import_data(self, data: list[Any]) -> None:
        pass


class NotJson(Faulty):
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return {"x": (1, 2)}


class Outside(Faulty):
    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        return {"x": 3.0}


class CrashesOnSecondResult(Faulty):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.running: set[int] = set()

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        self.running.add(parameter_id)
        return super().generate_parameters(parameter_id)

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any) -> None:
        self.running.remove(parameter_id)


ONE = SPACES["uniform"]


@pytest.mark.parametrize(
    ("tuner", "test", "arguments"),
    [
        (Mutates, "test_arguments_are_not_changed", [ONE]),
        (Shares, "test_suggestions_belong_to_the_receiver", [ONE]),
        (ForgetsConstraints, "test_constraints_are_met", []),
        (Unseeded, "test_the_same_seed_gives_the_same_suggestions", [ONE]),
        (Unseeded, "test_each_space_is_searched", [ONE]),
        (LeaksItsState, "test_a_pickled_tuner_continues_as_the_original", [ONE]),
        (Repeats, "test_a_small_space_is_visited_once_and_ends", []),
        (Repeats, "test_no_point_is_suggested_twice", [1]),
        (IgnoresImports, "test_imported_points_of_a_small_space_are_not_suggested", []),
        (NotJson, "test_each_space_is_searched", [ONE]),
        (Outside, "test_each_space_is_searched", [ONE]),
        (CrashesOnSecondResult, "test_late_second_and_foreign_results_are_survived", [ONE]),
    ],
)
def test_a_planted_fault_fails(tuner: type[Faulty], test: str, arguments: list[Any]) -> None:
    with pytest.raises((AssertionError, KeyError, NoMoreTrialError)):
        getattr(suite(lambda seed, _: tuner(seed))(), test)(*arguments)


def changed(point: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a point with each of its values changed, those within choices as well."""
    return {
        name: value
        if name == "_name"
        else changed(value, change)
        if isinstance(value, dict)
        else change(value)
        for name, value in point.items()
    }


def without_inner(value: Any) -> Any:
    return {"_name": value["_name"]} if isinstance(value, dict) and "_name" in value else value


# How the points of each of the different spaces go wrong, as those of no other.
WRONG: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "choice": lambda point: changed(point, lambda value: str(value)),
    "qnormal": lambda point: changed(point, lambda value: value + 0.5 if isinstance(value, float) else value),
    "mixed": lambda point: changed(point, lambda value: ord(value) if isinstance(value, str) else value),
    "three deep": lambda point: {name: without_inner(value) for name, value in point.items()},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_fault_of_one_kind_of_space_is_found_on_a_different_one(name: str) -> None:
    class Wrong(Faulty):
        def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
            return WRONG[name](super().generate_parameters(parameter_id))

    with pytest.raises(AssertionError):
        suite(lambda seed, _: Wrong(seed))().test_each_space_is_searched(SPACES[name])


def test_what_a_tuner_does_not_claim_is_skipped() -> None:
    class Modest(TunerConformance):
        seeded = False
        exhausts = False

    assert reasons(Modest).keys() == {
        "test_the_same_seed_gives_the_same_suggestions",
        "test_a_small_space_is_visited_once_and_ends",
        "test_a_small_space_is_visited_once_by_parallel_trials",
        "test_imported_points_of_a_small_space_are_not_suggested",
        "test_no_point_is_suggested_twice",
        "test_the_greatest_is_the_least_of_the_negated",
    }


def test_a_tuner_that_claims_everything_gets_every_test() -> None:
    assert reasons(TestRandom) == {}


def test_a_space_with_other_types_than_those_claimed_is_not_tried() -> None:
    class Simple(TunerConformance):
        spaces: ClassVar[dict[str, Any]] = {
            "own": {"x": ONE["x"], "c": {"_type": "choice", "_value": [0, 1]}}
        }
        constrained = None

        def make_directed(self, seed: int, optimize_mode: str) -> Tuner:
            raise NotImplementedError

    found = reasons(Simple)
    assert found.pop("test_constraints_are_met") == "`constrained` is None"
    assert found.pop("test_no_point_is_suggested_twice") == "`spaces` have no randint, as `corner` has"
    assert set(found.values()) == {"`spaces` have no randint, as `small` has"}


def reasons(tests: type[TunerConformance]) -> dict[str, str]:
    """Return why tests are skipped, by their names."""
    marks = {
        name: getattr(getattr(tests, name), "pytestmark", [])
        for name in dir(tests)
        if name.startswith("test_")
    }
    return {
        name: mark.kwargs["reason"] for name, found in marks.items() for mark in found if mark.name == "skip"
    }
