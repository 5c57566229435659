"""What is wrong with a search space is said completely, in place, and with a way out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pitchpipe.search_space import TYPES, Problem, SearchSpace, SearchSpaceError, check
from pitchpipe.search_space.problems import show

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
    problems = check(space, constraints)
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


@pytest.mark.parametrize("space", [None, 3, "x", [], [spec("uniform", 0, 1)]])
def test_a_space_that_is_not_an_object_is_refused(space: Any) -> None:
    (problem,) = check(space)
    assert problem.path == ()
    assert "a search space is an object of parameters" in problem.message
    assert "loguniform" in problem.hint


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (spec("unifrom", 0, 1), "x._type: unknown type 'unifrom' (did you mean 'uniform'?)"),
        (spec("LogUniform", 0.1, 1), "x._type: unknown type 'LogUniform' (did you mean 'loguniform'?)"),
        (spec("float", 0, 1), "x._type: unknown type 'float' (did you mean 'uniform'?)"),
        (spec("int", 0, 1), "x._type: unknown type 'int' (did you mean 'randint'?)"),
        (spec(7, 0, 1), f"x._type: unknown type 7 (known types: {', '.join(TYPES)})"),
        ({"type": "uniform", "_value": [0, 1]}, "x: _type is missing (rename 'type' to '_type')"),
        ({"_type": "uniform"}, "x: _value is missing"),
        (
            spec("uniform", 0, 1) | {"q": 1},
            "x: unknown key 'q' (a parameter has _type and _value, nothing else)",
        ),
        ({"_type": "uniform", "_value": 3}, "x._value: _value must be a list, not 3"),
        (
            None,
            "x: expected an object with _type and _value, not None "
            '(for a constant write {"_type": "choice", "_value": [null]})',
        ),
        (
            [1, 2],
            "x: expected an object with _type and _value, not [1, 2] "
            '(for a range write {"_type": "uniform", "_value": [1, 2]}, in Python pitchpipe.uniform(1, 2);'
            ' for two options "choice")',
        ),
        *(
            (
                [1, end],
                f"x: expected an object with _type and _value, not {show([1, end])} "
                '(for one of these options write {"_type": "choice", "_value": [...]},'
                " in Python pitchpipe.choice([...]))",
            )
            for end in (math.inf, math.nan, 10**5_000)
        ),
        (spec("uniform", 2, 1), "x._value: low 2 is greater than high 1 (swap them: [1, 2])"),
        (spec("randint", 5, 2), "x._value: low 5 is greater than high 2 (swap them: [2, 5])"),
        (
            spec("randint", 5, 5),
            "x._value: randint from 5 to 5 is empty "
            "(the upper bound is exclusive: write [5, 6] for the one value 5)",
        ),
        (spec("randint", 1, 5.0), "x._value[1]: randint needs integers, not 5.0 (write 5)"),
        (
            spec("randint", 1, 5.5),
            "x._value[1]: randint needs integers, not 5.5 (use uniform or quniform for fractions)",
        ),
        (spec("randint", 1, 2**60), f"x._value[1]: {2**60} is beyond the limit of {2**49} for randint"),
        (spec("lograndint", 1, 2**41), f"x._value[1]: {2**41} is beyond the limit of {2**40} for lograndint"),
        (
            spec("lograndint", 0, 9),
            "x._value[0]: lograndint needs bounds > 0, not 0 (use a small positive number)",
        ),
        (
            spec("lograndint", 2, 2),
            "x._value: lograndint from 2 to 2 is empty "
            "(the upper bound is exclusive: write [2, 3] for the one value 2)",
        ),
        (
            spec("lograndint", 1, 1.5),
            "x._value[1]: lograndint needs integers, not 1.5 (use loguniform or qloguniform for fractions)",
        ),
        (
            spec("loguniform", 0, 1),
            "x._value[0]: loguniform needs bounds > 0, not 0 (use a small positive number)",
        ),
        (spec("qloguniform", -1, 1, 0.1), "x._value[0]: qloguniform needs bounds > 0, not -1"),
        (spec("normal", 0, 0), "x._value[1]: sigma must be greater than 0, not 0"),
        (spec("lognormal", 0, -1), "x._value[1]: sigma must be greater than 0, not -1"),
        (spec("quniform", 0, 1, 0), "x._value[2]: q must be greater than 0, not 0"),
        (spec("qnormal", 0, 1, -1), "x._value[2]: q must be greater than 0, not -1"),
        (spec("quniform", 0, 1e15, 1), "x._value[2]: q 1 is too small for values up to 1e+15"),
        (
            spec("uniform", "1e-5", 1),
            "x._value[0]: '1e-5' is a string, not a number (YAML reads it as text: write 1.0e-5)",
        ),
        (
            spec("uniform", "0.1", 1),
            "x._value[0]: '0.1' is a string, not a number (write 0.1 without quotes)",
        ),
        (spec("uniform", "low", 1), "x._value[0]: 'low' is a string, not a number"),
        (spec("uniform", True, 2), "x._value[0]: True is not a number"),
        (spec("uniform", 0, math.inf), "x._value[1]: inf is not a finite number"),
        (spec("uniform", 0, [1]), "x._value[1]: [1] is not a number"),
        (
            spec("uniform", 0, 1, 0.1),
            "x._value: uniform needs [low, high], not 3 values (quniform has a step)",
        ),
        (spec("quniform", 0, 1), "x._value: quniform needs [low, high, q], not 2 values"),
        (spec("normal", 1), "x._value: normal needs [mu, sigma], not 1 values"),
        (
            spec("lognormal", 1000, 1),
            "x._value[0]: exp(1000) is out of the range of numbers "
            "(mu and sigma are those of the logarithm of the value)",
        ),
        (spec("choice"), "x._value: a choice needs at least one option"),
        (
            spec("choice", {1, 2}),
            "x._value[0]: {1, 2} (set) is not a JSON value "
            "(use strings, numbers, true, false, null, lists and objects)",
        ),
        (
            spec("choice", np.int64(3)),
            "x._value[0]: np.int64(3) (int64) is not a JSON value "
            "(turn it into plain Python numbers with .tolist())",
        ),
        (spec("choice", [{3: 1}]), "x._value[0][0]: the key 3 is not a string"),
        (
            spec("choice", {"_name": "a"}, {"_name": "b"}, {"_name": "a"}),
            "x._value[2]._name: the name 'a' is already that of option 0 (give each its own)",
        ),
        (spec("choice", {"_name": ["a"]}), "x._value[0]._name: _name must be a string, not ['a']"),
        (
            spec("choice", {"_name": "a"}, {"k": spec("uniform", 0, 1)}),
            "x._value[1]: the option holds parameters but has no _name "
            '(give every option of this choice a "_name")',
        ),
        (
            spec("choice", {"_name": "a", "k": [3]}),
            "x._value[0].k: expected an object with _type and _value, not [3] "
            '(for one of these options write {"_type": "choice", "_value": [...]}, in Python pitchpipe.choice([...]))',
        ),
        (
            spec("choice", {"_name": "a", "k": spec("uniform", 3, 1)}),
            "x._value[0].k._value: low 3 is greater than high 1 (swap them: [1, 3])",
        ),
    ],
)
def test_a_wrong_parameter_is_explained(wrong: Any, expected: str) -> None:
    assert said(wrong) == [expected]


@pytest.mark.parametrize(
    ("name", "expected"), [(1, "the parameter name 1 is not a string"), ("", "an empty name")]
)
def test_a_wrong_name_is_explained(name: Any, expected: str) -> None:
    (problem,) = check({name: spec("uniform", 0, 1)})
    assert expected in problem.message


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
        spec("choice", None, True, math.inf, [], {}, "x"),
        spec("choice", {"_name": "a"}, {"no name": 1}),
        spec("choice", {"_name": 1}, {"_name": True}),
    ],
)
def test_what_nni_accepts_is_accepted(value: Any) -> None:
    assert said(value) == []


def test_a_choice_with_an_unnamed_option_is_opaque() -> None:
    space = SearchSpace.parse({"x": spec("choice", {"_name": "a"}, {"b": 1})})
    assert space.parameters[0].options == ({"_name": "a"}, {"b": 1})
    assert not space.parameters[0].nested


def test_a_problem_without_a_place_is_only_its_message() -> None:
    assert str(Problem((), "message", "hint")) == "message (hint)"
