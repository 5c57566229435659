"""Python data as JSON."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe import uniform
from pitchpipe.config import LocalConfig
from pitchpipe.config.draft import plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(JSON)
def test_json_is_copied_unchanged(data: Any) -> None:
    assert plain(data) == (data, [])


def test_the_copy_shares_nothing() -> None:
    data = {"a": [{"b": 1}]}
    copied, _ = plain(data)
    copied["a"][0]["b"] = 2
    assert data == {"a": [{"b": 1}]}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Path("folder"), "folder"),
        (np.float64(0.5), 0.5),
        (np.int32(3), 3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array([[1, 2]]), [[1, 2]]),
    ],
)
def test_value_gets_its_plain_type(value: Any, expected: Any) -> None:
    (copied,), findings = plain([value])
    assert (copied, type(copied), findings) == (expected, type(expected), [])


def test_a_section_becomes_its_canonical_form() -> None:
    copied, _ = plain({"service": LocalConfig(platform="local", gpu_indices=(1,))})
    assert (copied["service"]["platform"], copied["service"]["gpuIndices"]) == ("local", [1])


def test_everything_that_is_not_json_is_found_at_its_path() -> None:
    copied, findings = plain({"a": [1, {2}], "b": {3: "x"}, "c": object()})
    assert copied == {"a": [1, None], "b": {}, "c": None}
    assert [(finding.path, finding.message) for finding in findings] == [
        (("a", 1), "set cannot be stored as JSON"),
        (("b",), "the key 3 is not text"),
        (("c",), "object cannot be stored as JSON"),
    ]


def test_a_function_that_was_not_called_is_named() -> None:
    _, (finding,) = plain({"search_space": {"x": uniform}})
    assert finding.message == "the function uniform is not a value"
    assert finding.hint == "call it: uniform(...)"


@pytest.mark.parametrize("mine", [object, object()])
def test_own_class_as_a_tuner_is_told_how_it_is_named(mine: Any) -> None:
    _, (finding,) = plain({"tuner": mine})
    assert finding.hint.startswith('write {"class_name": "FILE.object", ')
