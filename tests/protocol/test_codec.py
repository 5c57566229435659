"""JSON: equal to json_tricks for plain values, faithful for the rest, safe to read."""

from __future__ import annotations

import datetime
import enum
import math
import subprocess
import sys
from collections import OrderedDict

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.protocol import JsonError, dumps, loads

from ..lazy import Lazy

json_tricks = Lazy("json_tricks")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


class Colour(enum.Enum):
    RED = 1


class Thing:
    pass


def same(a: object, b: object) -> bool:
    """Equality that tells types apart and holds NaN equal to itself."""
    return repr(a) == repr(b)


@settings(max_examples=50)
@given(PLAIN)
def test_plain_value_has_the_text_of_json_tricks(value):
    assert dumps(value) == json_tricks.dumps(value, allow_nan=True)


@settings(max_examples=50)
@given(PLAIN)
def test_plain_value_comes_back(value):
    assert same(loads(dumps(value)), value)


@settings(max_examples=50)
@given(PLAIN)
def test_text_of_json_tricks_is_read_as_json_tricks_reads_it(value):
    text = json_tricks.dumps(value, allow_nan=True)
    assert same(loads(text), json_tricks.loads(text, preserve_order=False))


@given(st.integers(min_value=2**53, max_value=10**400))
def test_big_integer_is_exact(value):
    assert loads(dumps({"n": value})) == {"n": value}


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_nan_and_infinities_survive(value, text):
    assert dumps(value) == text
    assert same(loads(text), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (numpy.float64(0.5), "0.5"),
        (numpy.float32(0.5), "0.5"),
        (numpy.longdouble(0.5), "0.5"),
        (numpy.int64(7), "7"),
        (numpy.uint8(7), "7"),
        (numpy.bool_(True), "true"),
        ({"a": [numpy.int32(1), numpy.float64("nan")]}, '{"a": [1, NaN]}'),
    ],
)
def test_numpy_scalar_is_a_number(value, text):
    assert dumps(value) == text


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        datetime.datetime(2024, 2, 29, 12, 30, 1),
        datetime.date(2024, 2, 29),
        datetime.timedelta(seconds=3),
        1 + 2j,
        b"\xff\x00",
        {"nested": [{"set": {3}}]},
    ],
)
def test_rich_value_comes_back(value):
    assert same(loads(dumps(value)), value)


@pytest.mark.parametrize("array", [numpy.array([[1.0, numpy.nan]]), numpy.arange(3), numpy.zeros((0, 2))])
def test_array_comes_back_with_type_and_shape(array):
    back = loads(dumps({"a": array, "b": numpy.float32(1)}))["a"]
    assert back.dtype == array.dtype
    numpy.testing.assert_array_equal(back, array)


def test_ordered_dict_and_tuple_come_back_plain():
    back = loads(dumps(OrderedDict(b=(1, 2), a={3})))
    assert type(back) is dict
    assert back == {"b": [1, 2], "a": {3}}


@pytest.mark.parametrize("value", [Thing(), Colour.RED, lambda: 0, {(1, 2): 3}, {"a": [Thing()]}])
def test_value_without_json_is_refused(value):
    with pytest.raises(JsonError, match="cannot be written as JSON"):
        dumps(value)


def test_value_that_contains_itself_is_refused():
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(JsonError):
        dumps(circle)


@pytest.mark.parametrize("text", ["", "{", "nul", "{'a': 1}", "[" * 100_000, "1" * 5000, "// no\n1", '"\n"'])
def test_rubbish_is_refused_and_shown(text):
    with pytest.raises(JsonError, match="not JSON: "):
        loads(text)


@pytest.mark.parametrize("name", ["__ndarray__", "__set__", "__complex__", "__date__", "__mine__"])
def test_own_key_that_looks_like_an_encoding_is_kept(name):
    mine = {"default": 0.5, name: 5, "inner": [{name: None}]}
    assert loads(dumps(mine)) == mine


@given(st.text(max_size=60) | st.text('[]{}",:_0123456789.eE-ndray', max_size=60))
def test_any_text_is_a_value_or_a_json_error(text):
    try:
        loads(text)
    except JsonError:
        pass


@pytest.mark.parametrize(
    "text",
    [
        '{"__instance_type__": ["antigravity", "Thing"], "attributes": {}}',
        '{"__enum__": {"__enum_instance_type__": ["antigravity", "Thing"], "name": "A"}}',
    ],
)
def test_reading_imports_nothing_that_the_text_names(text):
    assert isinstance(loads(text), dict)
    assert "antigravity" not in sys.modules


def test_json_tricks_and_numpy_are_not_imported_for_plain_values():
    code = (
        "import sys; from pitchpipe.protocol import dumps, loads; loads(dumps({'a': [1, 2.5, None]}));"
        "assert not {'json_tricks', 'numpy', 'dataclasses'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
