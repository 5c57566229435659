"""Constraints as part of a space: names, nested choices, sampling."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace, SearchSpaceError, check, impossible

SPACE: dict[str, Any] = {
    "low": {"_type": "randint", "_value": [0, 10]},
    "high": {"_type": "randint", "_value": [0, 10]},
    "batch-size": {"_type": "choice", "_value": [16, 32]},
    "lambda": {"_type": "uniform", "_value": [0, 1]},
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "Linear"},
            {"_name": "Conv", "kernel": {"_type": "randint", "_value": [1, 8]}},
            {"_name": "Pool", "kernel": {"_type": "randint", "_value": [1, 8]}},
        ],
    },
}


def said(*constraints: Any) -> list[str]:
    return [str(problem) for problem in check(SPACE, list(constraints))]


def point(**changes: Any) -> dict[str, Any]:
    return {"low": 1, "high": 2, "batch-size": 16, "lambda": 0.5, "layer": {"_name": "Linear"}} | changes


def test_samples_meet_the_constraints() -> None:
    space = SearchSpace.parse(SPACE, ["low < high", "layer.kernel <= low"])
    rng = np.random.default_rng(1)
    for _ in range(300):
        sample = space.sample(rng)
        assert sample["low"] < sample["high"]
        assert sample["layer"].get("kernel", 0) <= sample["low"]
        assert space.violations(sample) == []


def test_violations_are_the_texts_of_the_constraints() -> None:
    space = SearchSpace.parse(SPACE, ["low < high", "low > 0", "1 / (low - 2) > 0"])
    assert space.violations(point(low=2, high=1)) == ["low < high", "1 / (low - 2) > 0"]
    assert space.violations(point(low=3, high=4)) == []


@pytest.mark.parametrize(
    "text", ["layer.kernel > 100", "not layer.kernel < 100", "layer.kernel > 100 and low > 100"]
)
def test_a_constraint_over_an_inactive_parameter_is_met(text: str) -> None:
    space = SearchSpace.parse(SPACE, [text])
    assert space.violations(point()) == []
    assert space.violations(point(layer={"_name": "Conv", "kernel": 3})) == [text]
    assert space.violations(point(layer={"_name": "Pool", "kernel": 3})) == [text]


def test_a_nested_choice_is_its_name() -> None:
    space = SearchSpace.parse(SPACE, ["layer != 'Conv' or layer.kernel % 2 == 1"])
    assert space.violations(point(layer={"_name": "Conv", "kernel": 4})) == list(space.constraints)
    assert space.violations(point(layer={"_name": "Pool", "kernel": 4})) == []


def test_a_name_that_is_not_an_identifier_is_written_as_a_key() -> None:
    space = SearchSpace.parse(SPACE, ['parameters["batch-size"] > 16', "parameters['lambda'] < 0.6"])
    assert space.violations(point()) == ['parameters["batch-size"] > 16']
    assert SearchSpace.parse(SPACE, ['parameters["layer.kernel"] > 3']).violations(point()) == []


def test_a_dotted_name_is_found_whole() -> None:
    space = SearchSpace.parse({"a.b": SPACE["low"]}, ["a.b > 3"])
    assert space.violations({"a.b": 3}) == ["a.b > 3"]


def test_of_two_parameters_with_one_dotted_name_the_outer_one_is_meant() -> None:
    inner = {"_type": "choice", "_value": [{"_name": "x", "b": SPACE["low"]}]}
    for several in ({"a.b": SPACE["low"], "a": inner}, {"a": inner, "a.b": SPACE["low"]}):
        space = SearchSpace.parse(several, ["a.b > 3"])
        assert space.violations({"a.b": 3, "a": {"_name": "x", "b": 5}}) == ["a.b > 3"]
        assert space.violations({"a.b": 5, "a": {"_name": "x", "b": 3}}) == []


def test_one_equals_sign_is_explained() -> None:
    assert said("low = 3")[0].endswith("(use == to compare)")


@pytest.mark.parametrize("constraints", ["low < high", None, {"low": 1}, 3])
def test_constraints_must_be_a_list(constraints: Any) -> None:
    (problem,) = check(SPACE, constraints)
    assert problem.path == ("constraints",)


def test_a_parameter_that_could_not_be_read_is_not_reported_twice() -> None:
    space = {"a": {"_type": "chioce", "_value": [{"_name": "x", "k": SPACE["low"]}]}}
    problems = check(space, ["a.k < 3", "a == 'x'", "b < 3"])
    assert [problem.path for problem in problems] == [("a", "_type"), ("constraints", 2)]


def test_sampling_gives_up_and_names_the_constraint() -> None:
    space = SearchSpace.parse(SPACE, ["low >= 0", "low > 10"])
    with pytest.raises(SearchSpaceError) as error:
        space.sample(np.random.default_rng(0))
    (problem,) = error.value.problems
    assert problem.path == ("constraints", 1)
    assert "10000 samples in a row" in problem.message


def test_constraints_that_contradict_each_other_are_named_together() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    (problem,) = impossible(space, ["x > 0.5", "x < 0.9", "x < 0.2"])
    assert str(problem) == (
        "constraints[2]: 10000 samples in a row violate this or x > 0.5"
        " (they contradict each other or leave almost nothing: loosen one, or narrow the bounds instead)"
    )
    assert impossible(space, ["x > 0.5", "x < 0.9"]) == []


def test_a_pickled_space_keeps_its_constraints() -> None:
    space = SearchSpace.parse(SPACE, ["low < high"])
    copy = pickle.loads(pickle.dumps(space))
    assert copy.violations(point(low=3)) == ["low < high"]
    assert copy == space != SearchSpace.parse(SPACE)
