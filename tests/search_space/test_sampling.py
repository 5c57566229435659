"""Functions that write the parameters of a search space."""

from __future__ import annotations

import inspect

import pytest

import pitchpipe
from pitchpipe.search_space import TYPES, SearchSpace


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_has_a_function_that_takes_its_values(kind: str) -> None:
    function = getattr(pitchpipe, kind)
    values = [1, 5, 1][: len(inspect.signature(function).parameters)]
    written = function(["a", "b"]) if kind == "choice" else function(*values)
    assert written == {"_type": kind, "_value": ["a", "b"] if kind == "choice" else values}
    SearchSpace.parse({"x": written})


def test_options_may_hold_parameters() -> None:
    space = {
        "layer": pitchpipe.choice([{"_name": "none"}, {"_name": "conv", "kernel": pitchpipe.randint(1, 4)}])
    }
    assert SearchSpace.parse(space).size == 4
