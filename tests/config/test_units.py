"""Durations, memory sizes and GPU indices."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.config.values import UnitError, parse_duration, parse_gpu_indices, parse_memory

ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.integers())
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("10m", 600),
        ("1.5h", 5400),
        ("2D", 172800),
        (" 5 S ", 5),
        (".5h", 1800),
        (90, 90),
        (0.5, 0.5),
    ],
)
def test_duration_in_each_unit(text: Any, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value", ["", "h", "1w", "1h30m", "-1s", -1, True, None, [], math.inf, math.nan, 10**400, "١s"]
)
def test_duration_that_is_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_duration(value)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4gb", 4 * 2**30),
        ("1 TB", 2**40),
        ("1.5kb", 1536),
        ("0.3kb", 308),
        ("7b", 7),
        ("2MB", 2**21),
        (4096, 4096),
    ],
)
def test_memory_in_each_unit(text: Any, size: int) -> None:
    assert parse_memory(text) == size
    assert isinstance(parse_memory(text), int)


@pytest.mark.parametrize("value", ["4g", "gb", -1, 1.5, True, None, "-1gb", "4gb 2mb"])
def test_memory_that_is_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_memory(value)


@pytest.mark.parametrize(("value", "indices"), [(3, (3,)), ("0,1", (0, 1)), ("2", (2,)), ([1, 0], (1, 0))])
def test_gpu_indices_in_each_form(value: Any, indices: tuple[int, ...]) -> None:
    assert parse_gpu_indices(value) == indices


@pytest.mark.parametrize("value", ["", "a", "0,,1", -1, [0, 0], "0,0", [], [True], 1.0, ["0"], "0,-2"])
def test_gpu_indices_that_are_none(value: Any) -> None:
    with pytest.raises(UnitError):
        parse_gpu_indices(value)


@given(ANYTHING)
def test_any_value_is_parsed_or_refused(value: Any) -> None:
    for parse in (parse_duration, parse_memory, parse_gpu_indices):
        try:
            result = parse(value)
        except UnitError as error:
            result = str(error)
        assert result or result == 0
