"""Values as Python's own, and as JSON that every reader takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from pitchpipe.store.reading.json_values import parsed, plain, to_json


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
