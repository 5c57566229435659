"""What is wrong with a search space is said completely, in place, and with a way out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pitchpipe.search_space import TYPES, Problem, SearchSpace, SearchSpaceError, check

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(TYPES),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["_type", "_value", "_name", "a", "", "b.c"]), inner, max_size=4)
        | st.fixed_dictionaries({"_type": st.sampled_from(TYPES), "_value": st.lists(inner, max_size=3)})
    ),
    max_leaves=20,
)


def said(*specs: Any, **named: Any) -> list[str]:
    return [str(problem) for problem in check(dict(zip("xyz", specs, strict=False)) | named)]


def spec(type_name: Any, *values: Any) -> dict[str, Any]:
    return {"_type": type_name, "_value": list(values)}


@given(json_values, json_values)
@example({"x": spec("randint", 0, 10**400)}, [])
@example({"x": spec("uniform", -1.7e308, 1.7e308)}, [])
@example({"x": spec("quniform", 0, 1, 5e-324)}, [])
@example({"x": spec("qlognormal", 700, 1, 1e-300)}, [])
@example({"x": spec("normal", 1e308, 1e308)}, [])
def test_parse_raises_nothing_but_search_space_errors(space: Any, constraints: Any) -> None:
    problems = check(space, constraints, stored=True)
    if problems:
        with pytest.raises(SearchSpaceError) as error:
            SearchSpace.parse(space, constraints)
        assert repr(error.value.problems) == repr(tuple(problems))
        assert str(error.value)
    else:
        parsed = SearchSpace.parse(space, constraints)
        assert parsed.constraints or parsed.validate(parsed.sample(np.random.default_rng(0))) == []


@given(
    st.dictionaries(
        st.sampled_from("ab"),
        st.fixed_dictionaries(
            {
                "_type": st.sampled_from(TYPES),
                "_value": st.lists(st.integers() | st.floats(), min_size=2, max_size=3),
            }
        ),
    )
)
def test_any_numbers_make_a_sound_space_or_a_problem(space: Any) -> None:
    if not check(space):
        parsed = SearchSpace.parse(space)
        for unit in (0.0, 0.4, 1.0):
            point = parsed.decode([unit] * len(parsed.parameters))
            assert parsed.validate(point) == []
            parsed.encode(point)


@pytest.mark.parametrize("deep", [60, 100, 5000])
def test_depth_is_bounded(deep: int) -> None:
    options: Any = 1
    choices: Any = spec("uniform", 0, 1)
    for _ in range(deep):
        options = [options]
        choices = spec("choice", {"_name": "a", "x": choices})
    said_of_options, said_of_choices = said(spec("choice", options)), said(choices)
    if deep == 60:
        assert said_of_options == said_of_choices == []
        point = SearchSpace.parse({"x": choices}).sample(np.random.default_rng(0))
        assert SearchSpace.parse({"x": choices}).validate(point) == []
    else:
        assert len(said_of_options) == len(said_of_choices) == 1
        assert "nested more than 64 levels deep" in said_of_options[0]
        assert "nested more than 64 levels deep" in said_of_choices[0]


@pytest.mark.parametrize("type_name", TYPES)
def test_every_type_is_read(type_name: str) -> None:
    values = [1, 5, 1] if type_name.startswith("q") else [1, 5]
    (parameter,) = SearchSpace.parse({"x": spec(type_name, *values)}).parameters
    assert parameter.type == type_name
    assert parameter.categorical == (type_name == "choice") != parameter.ordered
    assert parameter.integer == ("randint" in type_name)
    assert parameter.log == ("log" in type_name)
    assert parameter.normal == ("normal" in type_name)
    assert (parameter.q == 1) == type_name.startswith("q")


@pytest.mark.parametrize("constant", [3, 0.1, "adam", True])
def test_a_plain_value_is_a_constant(constant: Any) -> None:
    space = SearchSpace.parse({"k": constant, "c": spec("choice", {"_name": "a", "k": constant})})
    assert space.decode([0.5, 0.5, 0.5]) == {"k": constant, "c": {"_name": "a", "k": constant}}
    assert space.size == 1


def test_every_problem_is_listed_with_its_path() -> None:
    problems = check(
        {
            "a": spec("uniform", "1", "x"),
            "b": spec("choice", {"_name": "p", "k": spec("normal", 0, -1), "l": [3]}, {"_name": "p"}),
            "c": spec("nothing"),
        },
        ["a <", "b.kk > 1", "c > 1", 7],
    )
    assert [problem.path for problem in problems] == [
        ("a", "_value", 0),
        ("a", "_value", 1),
        ("b", "_value", 1, "_name"),
        ("b", "_value", 0, "k", "_value", 1),
        ("b", "_value", 0, "l"),
        ("c", "_type"),
        ("constraints", 0),
        ("constraints", 1),
        ("constraints", 3),
    ]


@pytest.mark.parametrize(
    "value",
    [
        spec("uniform", 1, 1),
        spec("quniform", 4, 4, 1),
        spec("loguniform", 0.1, 0.1),
        spec("qloguniform", 0.1, 0.1, 3),
        spec("uniform", 1e200, 2e200),
        {"_type": "uniform", "_value": (0, 1)},
        spec("choice", None, True, 2.5, [], {}, "x"),
        spec("choice", {"_name": "a"}, {"no name": 1}),
        spec("choice", {"_name": 1}, {"_name": True}),
    ],
)
def test_what_nni_accepts_is_accepted(value: Any) -> None:
    assert said(value) == []


@pytest.mark.parametrize(
    "option",
    [
        {"_name": "conv", "kernel": spec("choice", 1, 3)},
        {"_name": "conv", "inner": {"kernel": spec("uniform", 0, 1)}},
        {"kernel": spec("uniform", 0, 1)},
        {"layers": [1, {"kernel": spec("uniform", 0, 1)}]},
        [spec("uniform", 0, 1)],
        spec("uniform", 0, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("others", [["none"], [None, 3], [{"a": 1}], []], ids=str)
def test_no_option_of_a_plain_choice_holds_parameters_that_nothing_samples(
    option: Any, others: list[Any]
) -> None:
    if "_name" in option and not others:
        others = [[]]
    paths = [problem.path for problem in check({"x": spec("choice", *others, option)})]
    assert paths == [("x", "_value", len(others))]


def test_a_choice_with_an_unnamed_option_is_opaque() -> None:
    space = SearchSpace.parse({"x": spec("choice", {"_name": "a"}, {"b": 1})})
    assert space.parameters[0].options == ({"_name": "a"}, {"b": 1})
    assert not space.parameters[0].nested


def test_a_problem_without_a_place_is_only_its_message() -> None:
    assert str(Problem((), "message", "hint")) == "message (hint)"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("specification", "path"),
    [
        (lambda value: spec("choice", 1, value), ("x", "_value", 1)),
        (lambda value: value, ("x",)),
        (lambda value: spec("choice", {"a": [0, value]}), ("x", "_value", 0, "a", 1)),
        (
            lambda value: spec("choice", {"_name": "a", "y": spec("choice", value)}),
            ("x", "_value", 0, "y", "_value", 0),
        ),
        (lambda value: spec("choice", {"_name": "a", "y": value}), ("x", "_value", 0, "y")),
        (lambda value: spec("choice", {"_name": value}), ("x", "_value", 0, "_name")),
        (lambda value: spec("uniform", 0, value), ("x", "_value", 1)),
        (lambda value: spec("quniform", 0, 1, value), ("x", "_value", 2)),
        (lambda value: spec("lognormal", value, 1), ("x", "_value", 0)),
    ],
)
def test_number_that_json_cannot_hold_is_refused_at_its_place(
    specification: Any, path: Any, value: float
) -> None:
    problems = check({"x": specification(value), "z": "nan"})
    assert [problem.path for problem in problems] == [path]


def test_stored_space_may_have_options_that_json_cannot_hold() -> None:
    space = {"x": spec("choice", math.nan, 1), "y": math.inf}
    assert check(space, stored=True) == []
    assert SearchSpace.parse(space).validate({"x": math.nan, "y": math.inf}) == []
