"""Values as Python's own, and as JSON that every reader takes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest

from pitchpipe.store.reading.json_values import flat, numbers_in, parsed, plain, to_json


@dataclass
class Point:
    """A dataclass, as the API returns them."""

    x: Any
    n: Any = 0


@pytest.mark.parametrize("text", [b"1", 1, "", "{", "nothing"])
def test_what_is_not_json_text_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parsed(text)


def test_no_text_is_no_value() -> None:
    assert parsed(None) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(math.nan), b'{"x":null,"n":0}'),
        (Point(math.inf, 2**70), b'{"x":null,"n":1180591620717411303424}'),  # more than 64 bits
        (Point("caf\udce9", [math.nan]), rb'{"x":"caf\udce9","n":[null]}'),  # a path that is not UTF-8
        ({1: (1, 2)}, b'{"1":[1,2]}'),
        ({"x": 2**70, "who": Point}, None),
    ],
)
def test_everything_becomes_strict_json(value: Any, expected: bytes | None) -> None:
    assert to_json(value) == (expected or b'{"x":1180591620717411303424,"who":"%s"}' % str(Point).encode())


def test_plain_value_has_neither_nan_nor_tuples() -> None:
    assert plain({"a": (1, math.nan), "b": [{"c": -math.inf}]}) == {"a": [1, None], "b": [{"c": None}]}


def test_empty_objects_stay_as_parameters() -> None:
    assert flat({"a": {}, "b": [1], "c": {"d": {"e": 1}}}) == {"a": {}, "b": [1], "c.d.e": 1}
    assert flat({}) == {}


@pytest.mark.parametrize(
    ("nested", "names"),
    [
        ({"m": {"_name": "a", "lr": 1}, "m.lr": 2}, ["m._name", "m/lr", "m.lr"]),
        ({"m.lr": 2, "m": {"_name": "a", "lr": 1}}, ["m.lr", "m._name", "m/lr"]),
        ({"m.lr": 2, "m": {"_name": "b"}}, ["m.lr", "m._name"]),
        ({"m": {"_name": "a"}, "m._name": "x"}, ["m/_name", "m._name"]),
        ({"a": {"b": {"c": 1}, "b.c": 2}, "a.b.c": 3, "a/b.c": 4}, ["a/b/c", "a//b.c", "a.b.c", "a/b.c"]),
    ],
    ids=json.dumps,
)
def test_every_parameter_has_a_name_of_its_own(nested: dict[str, Any], names: list[str]) -> None:
    assert [*flat(nested)] == names
    assert [*flat(nested, "final")] == [f"final.{name}" for name in names]


@pytest.mark.parametrize(
    ("report", "numbers"),
    [
        (0.5, {"acc": 0.5}),
        (True, {"acc": 1.0}),
        ("0.5", {}),
        (None, {}),
        ([1.0], {}),
        ({}, {}),
        ({"default": 1, "val": {"acc": 2, "why": "x", "of": [3]}, "empty": {}}, {"acc": 1.0, "val.acc": 2.0}),
        ({"acc": 3.0, "default": 1.0}, {"acc": 3.0}),
        ({"acc": 10**400, "DROP TABLE x": 2}, {"DROP TABLE x": 2.0}),
    ],
)
def test_numbers_of_a_result_have_the_names_of_their_metrics(report: Any, numbers: dict[str, float]) -> None:
    assert numbers_in(report, "acc") == numbers
