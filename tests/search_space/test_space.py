"""The search space as a whole: samples are points, vectors lead back, activity follows the choices."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pitchpipe.search_space import Parameter, SearchSpace

NESTED = {
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "Empty"},
            {
                "_name": "Conv",
                "kernel": {"_type": "choice", "_value": [1, 3, 5]},
                "norm": {
                    "_type": "choice",
                    "_value": [
                        {"_name": "batch", "decay": {"_type": "uniform", "_value": [0, 1]}},
                        {"_name": "none"},
                    ],
                },
            },
            {"_name": "Pool", "kernel": {"_type": "randint", "_value": [2, 6]}},
        ],
    },
    "lr": {"_type": "loguniform", "_value": [1e-5, 1.0]},
}

numbers = st.floats(-1e6, 1e6) | st.integers(-1000, 1000)
positive = st.floats(1e-6, 1e6) | st.integers(1, 1000)
steps = st.floats(1e-3, 1e3) | st.integers(1, 20)
names = st.text("abcxyz_-é.", min_size=1, max_size=5).filter(lambda name: name != "_name")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def spec(type_name: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda values: {"_type": type_name, "_value": list(values)})


def bounded(type_name: str, bound: st.SearchStrategy[Any], *more: Any) -> st.SearchStrategy[dict[str, Any]]:
    def in_order(value: dict[str, Any]) -> dict[str, Any]:
        low, high, *rest = value["_value"]
        return {"_type": type_name, "_value": [min(low, high), max(low, high), *rest]}

    return spec(type_name, bound, bound, *more).map(in_order)


def is_sound(option: Any) -> bool:
    return "_value" not in json.dumps(option) and not (isinstance(option, dict) and "_name" in option)


leaves = st.one_of(
    st.lists(json_values.filter(is_sound), min_size=1, max_size=4).map(
        lambda v: {"_type": "choice", "_value": v}
    ),
    st.tuples(st.integers(-(2**48), 2**48), st.integers(1, 2**40)).map(
        lambda v: {"_type": "randint", "_value": [v[0], v[0] + v[1]]}
    ),
    st.tuples(st.integers(1, 2**39), st.integers(1, 2**39)).map(
        lambda v: {"_type": "lograndint", "_value": [v[0], v[0] + v[1]]}
    ),
    bounded("uniform", numbers),
    bounded("quniform", numbers, steps),
    bounded("loguniform", positive),
    bounded("qloguniform", positive, steps),
    spec("normal", numbers, positive),
    spec("qnormal", st.integers(-100, 100), st.floats(1e-2, 1e2), st.floats(1e-2, 1e2)),
    spec("lognormal", st.floats(-10, 10), st.floats(1e-3, 3)),
    spec("qlognormal", st.floats(-3, 6), st.floats(1e-3, 2), st.floats(1e-2, 1e2)),
)


def nested_choice(groups: list[dict[str, Any]]) -> dict[str, Any]:
    return {"_type": "choice", "_value": [{"_name": f"option{i}", **group} for i, group in enumerate(groups)]}


def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    groups = st.dictionaries(names, inner, max_size=2)
    return st.lists(groups, min_size=1, max_size=3).map(nested_choice)


spaces = st.dictionaries(names, st.recursive(leaves, grow, max_leaves=6), max_size=4)
seeds = st.integers(0, 2**32 - 1)


def close(parameter: Parameter, there: float, back: float) -> bool:
    """Return whether two values are equal to a billionth of the scale of the parameter."""
    if parameter.log:
        return math.isclose(there, back, rel_tol=1e-9)
    ends = (parameter.low, parameter.high, parameter.mu, parameter.sigma)
    return abs(there - back) <= 1e-9 * max(abs(end) for end in ends if end is not None)


def same_point(space: SearchSpace, there: Any, back: Any) -> bool:
    """Compare points: types differ, NaN equals itself, and continuous values may be close."""
    if repr(there) == repr(back):
        return True
    by_key = {parameter.key: parameter for parameter in space.parameters}
    flat_there, flat_back = (dict(flatten(point, space.parameters)) for point in (there, back))
    if list(flat_there) != list(flat_back):
        return False
    continuous = {key for key in flat_there if by_key[key].size is None and by_key[key].q is None}
    exact = all(repr(flat_there[key]) == repr(flat_back[key]) for key in flat_there.keys() - continuous)
    return exact and all(close(by_key[key], flat_there[key], flat_back[key]) for key in continuous)


def flatten(point: dict[str, Any], parameters: tuple[Parameter, ...], parent: Any = None) -> Any:
    """Yield the values by key, worked out from the flat list alone."""
    for index, parameter in enumerate(parameters):
        if parameter.parent == parent:
            value = point[parameter.name]
            yield parameter.key, value["_name"] if parameter.nested else value
            if parameter.nested:
                option = parameter.options.index(value["_name"])
                yield from flatten(value, parameters, (index, option))


def types(value: Any) -> set[type]:
    """Return the types of a value and of all within it."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {type(value)}.union(*map(types, children))


@given(spaces, seeds)
@example(NESTED, 1)
@example({"x": {"_type": "quniform", "_value": [2, 10, 5]}}, 3)
@example({"x": {"_type": "quniform", "_value": [0.15, 0.45, 0.1]}}, 3)
@example({"x": {"_type": "qloguniform", "_value": [0.001, 1, 0.1]}}, 3)
def test_a_sample_is_a_point_of_plain_json_and_its_vector_leads_back_to_it(
    specification: dict[str, Any], seed: int
) -> None:
    space = SearchSpace.parse(specification)
    point = space.sample(np.random.default_rng(seed))
    assert space.validate(point) == []
    assert list(point) == list(specification)
    assert types(point) <= {dict, list, str, int, float, bool, type(None)}

    vector = space.encode(point)
    active = {parameter.key for parameter, unit in zip(space.parameters, vector, strict=True) if unit == unit}
    assert vector.shape == (len(space.parameters),)
    assert active == {key for key, _ in flatten(point, space.parameters)}
    assert space.active(vector).tolist() == (~np.isnan(vector)).tolist()
    assert np.all((vector >= 0) & (vector <= 1) | np.isnan(vector))
    assert same_point(space, point, space.decode(vector))


@given(spaces, seeds)
def test_parents_come_first_and_any_point_of_the_cube_decodes_to_a_point_of_the_space(
    specification: dict[str, Any], seed: int
) -> None:
    space = SearchSpace.parse(specification)
    vector = np.random.default_rng(seed).choice([-0.5, 0.0, 0.3, 1.0, 1.5], len(space.parameters))
    assert space.validate(space.decode(vector)) == []
    for index, parameter in enumerate(space.parameters):
        if parameter.parent is None:
            assert parameter.key == (parameter.name,)
        else:
            above, option = parameter.parent
            assert above < index
            assert parameter.key == (*space.parameters[above].key, option, parameter.name)


@settings(max_examples=40)
@given(spaces, seeds)
@example({"x": {"_type": "choice", "_value": [math.nan]}}, 0)
def test_a_pickled_space_samples_the_same(specification: dict[str, Any], seed: int) -> None:
    space = SearchSpace.parse(specification)
    for copy in (pickle.loads(pickle.dumps(space)), cloudpickle.loads(cloudpickle.dumps(space))):
        samples = [s.sample(np.random.default_rng(seed)) for s in (space, copy)]
        assert repr(samples[0]) == repr(samples[1])
        assert copy == space
        assert hash(copy) == hash(space)


def test_the_keys_of_a_nested_space_are_those_of_nni() -> None:
    space = SearchSpace.parse(NESTED)
    assert [parameter.key for parameter in space.parameters] == [
        ("layer",),
        ("layer", 1, "kernel"),
        ("layer", 1, "norm"),
        ("layer", 1, "norm", 0, "decay"),
        ("layer", 2, "kernel"),
        ("lr",),
    ]
    assert [p.parent for p in space.parameters] == [None, (0, 1), (0, 1), (2, 0), (0, 2), None]


def test_an_option_without_parameters_is_only_its_name() -> None:
    space = SearchSpace.parse(NESTED)
    assert space.decode([0.1, 0.5, 0.5, 0.5, 0.5, 0.0]) == {"layer": {"_name": "Empty"}, "lr": 1e-5}


def test_activity_follows_nested_choices() -> None:
    space = SearchSpace.parse(NESTED)
    vector = [0.5, 0.5, 0.2, 0.5, 0.5, 0.5]
    assert space.active(vector).tolist() == [True, True, True, True, False, True]
    vector[2] = math.nan
    assert space.active(vector).tolist() == [True, True, True, False, False, True]


def test_decode_refuses_nan_where_the_parameter_is_active() -> None:
    space = SearchSpace.parse(NESTED)
    with pytest.raises(ValueError, match=r"layer\.kernel is active but NaN"):
        space.decode([0.5, math.nan, 0.9, math.nan, math.nan, 0.5])


@pytest.mark.parametrize("vector", [[], [0.5], [[0.5] * 6]])
def test_a_vector_of_the_wrong_shape_is_refused(vector: Any) -> None:
    space = SearchSpace.parse(NESTED)
    for use in (space.decode, space.active):
        with pytest.raises(ValueError, match="expected a vector of shape"):
            use(vector)


def test_a_space_is_a_cube_of_the_sampling_distribution() -> None:
    """sample() is decode() of uniform numbers: the same generator gives the same point."""
    space = SearchSpace.parse(NESTED)
    point = space.sample(np.random.default_rng(5))
    assert space.decode(np.random.default_rng(5).random(6)) == point


def test_validate_lists_every_fault() -> None:
    problems = SearchSpace.parse(NESTED).validate({"layer": {"_name": "Conv", "kernel": 2}, "x": 1})
    paths = [problem.path for problem in problems]
    assert paths == [("layer", "kernel"), ("layer", "norm"), ("lr",), ("x",)]


@pytest.mark.parametrize(
    ("specification", "size"),
    [
        ({}, 1),
        ({"a": {"_type": "choice", "_value": [1, 2, 2]}}, 2),
        ({"a": {"_type": "choice", "_value": [1, True, 1.0]}}, 2),
        ({"a": {"_type": "choice", "_value": [1, 2]}, "b": {"_type": "randint", "_value": [0, 5]}}, 10),
        ({"a": {"_type": "quniform", "_value": [2, 10, 5]}}, 3),
        ({"a": {"_type": "qloguniform", "_value": [0.001, 1, 0.1]}}, 11),
        ({"a": {"_type": "quniform", "_value": [0.5, 2.5, 1]}}, 2),
        ({"a": {"_type": "quniform", "_value": [0.15, 0.45, 0.1]}}, 3),  # 0.15 / 0.1 < 1.5
        ({"a": {"_type": "quniform", "_value": [3, 3, 2]}}, 1),
        ({"a": {"_type": "uniform", "_value": [3, 3]}}, 1),
        ({"a": {"_type": "uniform", "_value": [0, 1]}, "b": {"_type": "randint", "_value": [0, 5]}}, None),
        ({"a": {"_type": "qnormal", "_value": [0, 1, 1]}}, None),
        (NESTED, None),
        ({"layer": {"_type": "choice", "_value": NESTED["layer"]["_value"][::2]}}, 5),
    ],
)
def test_size_counts_the_distinct_points(specification: dict[str, Any], size: int | None) -> None:
    assert SearchSpace.parse(specification).size == size


@given(st.dictionaries(names, bounded("quniform", st.integers(-9, 9), st.integers(1, 4)), max_size=2), seeds)
def test_size_is_the_number_of_points_that_samples_reach(specification: dict[str, Any], seed: int) -> None:
    space = SearchSpace.parse(specification)
    rng = np.random.default_rng(seed)
    seen = {repr(space.sample(rng)) for _ in range(20)}
    assert space.size is not None
    assert len(seen) <= space.size


def test_sampling_does_not_share_options_with_the_space() -> None:
    specification = {"a": {"_type": "choice", "_value": [[1, {"b": 2}]]}}
    space = SearchSpace.parse(specification)
    rng = np.random.default_rng(0)
    space.sample(rng)["a"][1]["b"] = "changed"
    specification["a"]["_value"][0].append("changed")
    assert space.sample(rng) == {"a": [1, {"b": 2}]}


def test_spaces_that_differ_in_a_type_are_not_equal() -> None:
    one, other = (SearchSpace.parse({"a": {"_type": "choice", "_value": [v]}}) for v in (1, True))
    assert one != other
    assert one != "a space"


def test_spaces_that_differ_in_the_order_of_their_parameters_are_not_equal() -> None:
    assert SearchSpace.parse(NESTED) != SearchSpace.parse(dict(reversed(NESTED.items())))
    assert SearchSpace.parse(NESTED) == SearchSpace.parse(NESTED)
