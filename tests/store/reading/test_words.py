"""Numbers, durations, parameters and counts as people read them; the simple cases are doctests."""

from __future__ import annotations

import math
import time

import pytest

from pitchpipe.store.reading.words import (
    counts_text,
    duration_text,
    flat,
    length_text,
    moment_text,
    number_text,
    parameters_text,
    rate_text,
    result_text,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(9.9, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3599.6, "1 h 00 min"), (86399.6, "1 d 0 h")],
)
def test_duration_is_rounded_up_into_the_next_unit(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_length_leaves_out_what_is_zero() -> None:
    assert [length_text(seconds) for seconds in (60, 7200, 7260)] == ["1 min", "2 h", "2 h 01 min"]


@pytest.mark.parametrize(
    ("rate", "text"), [(2.0, "2 trials/s"), (1.9, "114 trials/min"), (0.02, "72 trials/h")]
)
def test_rate_is_in_a_unit_with_at_least_two(rate: float, text: str) -> None:
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([2 / 3, {"a": 1 / 3}], '[0.666667, {"a": 0.333333}]'),
        ("größer", '"größer"'),
        (None, "null"),
        (math.nan, "nan"),
        (7, "7"),
    ],
)
def test_numbers_in_a_result_are_rounded(value: object, text: str) -> None:
    assert result_text(value) == text


def test_whole_numbers_are_not_rounded() -> None:
    assert number_text(123456789) == "123456789"


def test_counts_leave_out_what_is_unknown() -> None:
    assert counts_text({}) == ""
    assert counts_text({"NEW": 3, "PAUSED": 1}) == "1 paused"


def test_empty_objects_stay_as_parameters() -> None:
    assert flat({"a": {}, "b": [1], "c": {"d": {"e": 1}}}) == {"a": {}, "b": [1], "c.d.e": 1}
    assert flat({}) == {}


def test_parameters_that_are_not_an_object_are_one_value() -> None:
    assert parameters_text([0.5]) == "[0.5]"


def test_moment_is_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    assert moment_text(0.0) == "1970-01-01 02:00:00"
    monkeypatch.undo()
    time.tzset()
