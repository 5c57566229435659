"""Which points count as the same: those that differ by rounding, however narrow the range."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners.base import Explored

NARROW: list[dict[str, Any]] = [
    {"_type": "uniform", "_value": [1e6, 1e6 + 1e-6]},
    {"_type": "uniform", "_value": [-1.7e9 - 1e-4, -1.7e9]},
    {"_type": "uniform", "_value": [1, 1 + 1e-12]},
    {"_type": "loguniform", "_value": [1e-9, 1e-9 * (1 + 1e-12)]},
    {"_type": "normal", "_value": [1e6, 1e-6]},
    {"_type": "lognormal", "_value": [20, 1e-12]},
    {"_type": "quniform", "_value": [1e12, 1e12 + 50, 1]},
    {"_type": "qnormal", "_value": [1e12, 20, 1]},
]


@pytest.mark.parametrize("spec", NARROW, ids=str)
def test_points_of_a_narrow_range_are_told_apart(spec: dict[str, Any]) -> None:
    space = SearchSpace.parse({"x": spec, "act": {"_type": "choice", "_value": ["a"]}})
    rng = np.random.default_rng(0)
    points = [space.sample(rng) for _ in range(60)]
    explored = Explored(space)
    different = len({point["x"] for point in points})
    assert different > 20
    assert sum(explored.add(point) for point in points) == different
    assert not any(explored.add(space.decode(space.encode(point))) for point in points)


@pytest.mark.parametrize(
    "spec",
    [
        {"_type": "uniform", "_value": [0, 1]},
        {"_type": "uniform", "_value": [-5, 1e6]},
        {"_type": "loguniform", "_value": [1e-8, 1e3]},
        {"_type": "normal", "_value": [3, 1]},
        {"_type": "lognormal", "_value": [0, 2]},
        {"_type": "quniform", "_value": [0, 1, 0.1]},
    ],
    ids=str,
)
def test_points_that_differ_by_rounding_are_one(spec: dict[str, Any]) -> None:
    explored = Explored(SearchSpace.parse({"x": spec}))
    assert explored.add({"x": 0.3})
    assert not explored.add({"x": math.nextafter(0.3, 1)})
    assert not explored.add({"x": 0.1 + 0.2})
    explored.forget({"x": 0.3})
    assert explored.add({"x": 0.1 + 0.2})
