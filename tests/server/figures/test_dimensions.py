"""Parameters as axes: from a search space, from trials, and where the two disagree."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.server.figures import (
    ExperimentTable,
    Objective,
    TrialRecord,
    dimensions_of,
    downsampled,
    inferred,
)
from pitchpipe.server.figures.dimensions import completed

UNIT = {"_type": "uniform", "_value": [0, 1]}
KERNEL = {"_type": "choice", "_value": [1, 3]}
NESTED = {
    "layer": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "conv", "kernel": KERNEL},
            {"_name": "pool", "kernel": KERNEL},
        ],
    }
}


def test_parameters_of_one_name_in_two_options_are_distinguished() -> None:
    dimensions = dimensions_of(NESTED)
    assert [one.name for one in dimensions] == ["layer", "layer.kernel (conv)", "layer.kernel (pool)"]
    point = {"layer": {"_name": "pool", "kernel": 3}}
    assert [one.value(point) for one in dimensions] == ["pool", None, "3"]


@pytest.mark.parametrize("names", [(1, 2), (True, False), (None, "x"), ("1", 1, True), (0.5, "0.5")], ids=str)
def test_parameters_of_options_whose_names_are_no_texts_are_found(names: tuple[Any, ...]) -> None:
    options = [{"_name": name, f"k{place}": UNIT} for place, name in enumerate(names)]
    _, *inner = dimensions_of({"layer": {"_type": "choice", "_value": options}})
    for place, name in enumerate(names):
        point = {"layer": {"_name": name, f"k{place}": 0.25}}
        assert [one.value(point) for one in inner] == [
            0.25 if place == number else None for number in range(len(names))
        ]


def test_options_of_any_kind_have_labels_of_their_own() -> None:
    options = [
        "1",
        1,
        "true",
        True,
        "null",
        None,
        "0.5",
        0.5,
        "[1]",
        [1],
        '{"a": 1}',
        {"a": 1},
        "relu",
        '"relu"',
    ]
    (act,) = dimensions_of({"act": {"_type": "choice", "_value": options}})
    assert act.positions([{"act": option} for option in options]).tolist() == list(range(len(options)))
    assert {"relu", "1", "true", "null"} <= set(act.options)


def test_parameters_with_one_dotted_name_have_names_of_their_own() -> None:
    nested = {"_type": "choice", "_value": [{"_name": "a", "lr": UNIT}, {"_name": "b"}]}
    point = {"m": {"_name": "a", "lr": 0.25}, "m.lr": 0.75}
    for found in (dimensions_of({"m": nested, "m.lr": UNIT}), inferred([point])):
        assert [(one.name, one.value(point)) for one in found] == [("m", "a"), ("m/lr", 0.25), ("m.lr", 0.75)]
        assert [one.field for one in found] == ["parameters.m._name", "parameters.m/lr", "parameters.m.lr"]


def test_choice_inside_a_choice_needs_both_to_be_made() -> None:
    inner = {
        "_type": "choice",
        "_value": [{"_name": "x", "k": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "y"}],
    }
    space = {"a": {"_type": "choice", "_value": [{"_name": "on", "b": inner}, {"_name": "off"}]}}
    k = dimensions_of(space)[-1]
    assert k.name == "a.b.k"
    assert k.value({"a": {"_name": "on", "b": {"_name": "x", "k": 0.5}}}) == 0.5
    assert k.value({"a": {"_name": "on", "b": {"_name": "y"}}}) is None
    assert k.value({"a": {"_name": "off"}}) is None


def test_ends_are_those_of_the_space_and_of_what_was_tried() -> None:
    (dimension,) = dimensions_of({"n": {"_type": "randint", "_value": [1, 5]}})
    assert dimension.bounds == (1.0, 4.0)
    assert completed(dimension, [{"n": 9}]).bounds == (1.0, 9.0)
    (rate,) = dimensions_of({"lr": {"_type": "loguniform", "_value": [1e-4, 1.0]}})
    assert rate.log
    assert not completed(rate, [{"lr": -1.0}]).log  # a user's own value that a logarithm cannot show
    (bell,) = dimensions_of({"z": {"_type": "normal", "_value": [1.0, 2.0]}})
    assert bell.bounds == (-5.0, 7.0)


def test_options_of_a_trial_that_the_space_has_not_are_added() -> None:
    (act,) = dimensions_of({"act": {"_type": "choice", "_value": ["relu", True, 1, None]}})
    assert act.options == ("relu", "true", "1", "null")
    assert completed(act, [{"act": "gelu"}]).options[-1] == "gelu"


def test_missing_search_space_is_read_from_the_trials() -> None:
    assert dimensions_of({"anything": [3]}) == []
    points = [{"lr": 1e-6, "net": {"_name": "a", "k": 1}}, {"lr": 0.1, "net": {"_name": "b"}}]
    trials = [TrialRecord(n, "SUCCEEDED", point) for n, point in enumerate(points)]
    table = ExperimentTable.of("one", [Objective()], trials, dimensions_of({"anything": [3]}))
    assert [(one.name, one.categorical, one.log) for one in table.dimensions] == [
        ("lr", False, True),
        ("net", True, False),
        ("net.k", False, False),
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "_name"]), ANYTHING, max_size=3), max_size=6))
@settings(max_examples=80, deadline=None)
def test_any_parameters_have_a_place_or_none(points: list[dict[str, Any]]) -> None:
    for dimension in inferred(points):
        units = dimension.units(points)
        known = np.isfinite(units)
        assert ((units[known] >= 0) & (units[known] <= 1)).all()
        assert known.tolist() == [value is not None for value in dimension.column(points)]
        json.dumps(dimension.options)


@given(st.lists(st.floats(), min_size=1, max_size=300), st.integers(4, 50))
@settings(max_examples=150, deadline=None)
def test_fewer_points_keep_ends_and_extremes(values: list[float], limit: int) -> None:
    steps, kept = downsampled(range(len(values)), values, limit)
    finite = [(step, value) for step, value in enumerate(values) if abs(value) <= 1e300]
    assert len(kept) <= limit
    assert (np.diff(steps) > 0).all()
    if finite:
        assert (kept.min(), kept.max()) == (min(v for _, v in finite), max(v for _, v in finite))
        assert (steps[0], steps[-1]) == (finite[0][0], finite[-1][0])
