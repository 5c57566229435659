"""Values and paths as messages have them."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.protocol import brief, brief_json, format_path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ("é", '"é"'),
        ({"a": [1]}, '{"a": [1]}'),
        ({1, 2}, "{1, 2}"),
        ("x" * 58, '"' + "x" * 58 + '"'),
        ("x" * 59, '"' + "x" * 56 + "..."),
    ],
)
def test_value_is_shown_as_json_or_else_as_python_and_shortened(value: Any, text: str) -> None:
    assert brief_json(value) == text


def test_value_that_contains_itself_is_shown() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert brief_json(loop) == "[[...]]"


def test_path_has_dots_for_keys_and_brackets_for_indices() -> None:
    assert [format_path(path) for path in [(), ("a",), ("a", 0, "b"), (0,)]] == ["", "a", "a[0].b", "[0]"]


def test_python_value_that_cannot_be_printed_is_named_by_its_type() -> None:
    assert [brief(value) for value in (10**38, 10**40, 10**5000)] == [
        str(10**38),
        f"{10**36}...",
        "a value of type int",
    ]
