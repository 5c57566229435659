"""The grid: order, completeness, laziness."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.search_space import SearchSpace
from pitchpipe.tuners import GridSearchTuner, NoMoreTrialError
from pitchpipe.tuners.base.grid import GridWalk

from ..searches import LINE, started


def spec(kind: str, *values: Any) -> dict[str, Any]:
    return {"_type": kind, "_value": list(values)}


def grid(space: dict[str, Any], limit: int, constraints: list[str] | None = None) -> list[dict[str, Any]]:
    tuner = started(GridSearchTuner(), space, constraints=constraints or [])
    return tuner.generate_multiple_parameters(range(limit))


def test_a_continuous_parameter_is_halved() -> None:
    points = [point["x"] for point in grid({"x": spec("uniform", 0, 1)}, 15)]
    assert points[:7] == [0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875]
    assert points[7:] == [i / 16 for i in range(1, 16, 2)]


def test_halves_are_those_of_the_distribution() -> None:
    log = [point["x"] for point in grid({"x": spec("loguniform", 1, 16)}, 3)]
    assert log == pytest.approx([4, 2, 8])
    normal = [point["x"] for point in grid({"x": spec("normal", 10, 1)}, 3)]
    assert normal == pytest.approx([10, 10 - 0.67449, 10 + 0.67449], abs=1e-5)


def test_the_last_parameter_varies_fastest() -> None:
    space = {"a": spec("choice", "p", "q"), "b": spec("randint", 0, 3)}
    assert [(p["a"], p["b"]) for p in grid(space, 10)] == list(itertools.product("pq", range(3)))


def test_an_epoch_visits_only_new_points() -> None:
    space = {"x": spec("uniform", 0, 1), "y": spec("uniform", 0, 1)}
    points = [(p["x"], p["y"]) for p in grid(space, 9)]
    assert points[:3] == [(0.5, 0.5), (0.5, 0.25), (0.5, 0.75)]
    assert sorted(points) == sorted(itertools.product([0.25, 0.5, 0.75], repeat=2))


def test_a_later_epoch_skips_old_points_without_walking_over_them() -> None:
    space = {"x": spec("uniform", 0, 1), **{f"n{i}": spec("randint", 0, 10**6) for i in range(2)}}
    walk = GridWalk(SearchSpace.parse(space))
    assert walk.next() is not None
    # As if the first epoch, with its 10^12 points, had just ended.
    walk._point = [0, 10**6 - 1, 10**6 - 1]
    assert list(walk.next()) == pytest.approx([0.25, 5e-7, 5e-7])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (spec("quniform", 2, 10, 5), [2, 5, 10]),
        (spec("quniform", 0, 1, 0.1), [i / 10 for i in range(11)]),
        (spec("qloguniform", 1, 100, 10), [1, *range(10, 101, 10)]),
        (spec("qnormal", 0, 1, 3), [-9, -6, -3, 0, 3, 6, 9]),
        (spec("quniform", 3, 3, 1), [3]),
        (spec("randint", 7, 8), [7]),
        (spec("lograndint", 1, 40), [*range(1, 40)]),
    ],
)
def test_steps_come_to_an_end(values: dict[str, Any], expected: list[float]) -> None:
    points = sorted(point["x"] for point in grid({"x": values}, 200))
    assert points == pytest.approx(expected)


def test_every_integer_of_a_bent_range_is_visited() -> None:
    space = SearchSpace.parse({"n": {"_type": "randint", "_value": [1, 200]}}, bend=5.0)
    walk = GridWalk(space)
    found = [space.decode(vector)["n"] for vector in iter(walk.next, None)]
    assert sorted(found) == list(range(1, 200))


def test_a_finite_space_ends_for_good() -> None:
    tuner = started(GridSearchTuner(), {"a": spec("choice", 1, 2)})
    tuner.generate_multiple_parameters([0, 1])
    for _ in range(2):
        with pytest.raises(NoMoreTrialError):
            tuner.generate_parameters(2)


def test_a_nested_space_visits_each_branch_in_full() -> None:
    inner = spec("choice", {"_name": "u", "z": spec("randint", 0, 2)}, {"_name": "v"})
    space = {"o": spec("choice", {"_name": "A", "k": inner}, {"_name": "B", "w": spec("choice", 1, 2)})}
    assert [point["o"] for point in grid(space, 20)] == [
        {"_name": "A", "k": {"_name": "u", "z": 0}},
        {"_name": "A", "k": {"_name": "u", "z": 1}},
        {"_name": "A", "k": {"_name": "v"}},
        {"_name": "B", "w": 1},
        {"_name": "B", "w": 2},
    ]


def test_a_branch_without_new_points_is_not_visited_again() -> None:
    space = {"o": spec("choice", {"_name": "A", "x": spec("uniform", 0, 1)}, {"_name": "B"})}
    names = [point["o"]["_name"] for point in grid(space, 8)]
    assert names == ["A", "B", *"AAAAAA"]


def test_the_walk_itself_visits_no_point_twice() -> None:
    inner = spec("choice", {"_name": "u", "z": spec("randint", 0, 5)}, {"_name": "v"})
    space = SearchSpace.parse({"o": spec("choice", {"_name": "A", "k": inner}, {"_name": "B"})})
    walk = GridWalk(space)
    vectors = list(itertools.takewhile(lambda vector: vector is not None, (walk.next() for _ in range(99))))
    assert len(vectors) == space.size == 7
    assert all((~np.isnan(vector) == space.active(vector)).all() for vector in vectors)


def test_an_empty_space_has_one_point() -> None:
    assert grid({}, 3) == [{}]


def test_equal_options_are_one_point() -> None:
    assert grid({"x": spec("choice", 1, 2, 1)}, 5) == [{"x": 1}, {"x": 2}]


def test_measured_points_are_left_out_even_if_continuous() -> None:
    tuner = started(GridSearchTuner(), LINE)
    tuner.import_data([{"parameter": {"x": 0.25}, "value": None}, {"parameter": {"x": 0.5}, "value": 0.0}])
    assert tuner.generate_parameters(0) == {"x": 0.75}


def test_constraints_leave_points_out() -> None:
    space = {"a": spec("randint", 0, 3), "b": spec("randint", 0, 3)}
    assert [(p["a"], p["b"]) for p in grid(space, 20, ["a < b"])] == [(0, 1), (0, 2), (1, 2)]


def test_contradictory_constraints_end_a_finite_space() -> None:
    assert grid({"a": spec("randint", 0, 50), "b": spec("randint", 0, 50)}, 1, ["a + b > 200"]) == []


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_discrete_space_is_visited_exactly_once(sizes: list[int]) -> None:
    space = {f"n{i}": spec("randint", 0, size) for i, size in enumerate(sizes)}
    points = [tuple(point.values()) for point in grid(space, 300)]
    assert points == list(itertools.product(*map(range, sizes)))


def test_a_walk_continues_after_pickling() -> None:
    space = {"x": spec("uniform", 0, 1), "q": spec("qnormal", 0, 1, 0.5)}
    walk = GridWalk(SearchSpace.parse(space))
    for _ in range(30):
        walk.next()
    other = pickle.loads(pickle.dumps(walk))
    assert [list(walk.next()) for _ in range(30)] == [list(other.next()) for _ in range(30)]  # type: ignore[arg-type]


def test_a_grid_of_a_billion_billions_takes_no_memory() -> None:
    tuner = GridSearchTuner()
    tracemalloc.start()
    try:
        tuner.update_search_space({f"x{i}": {"_type": "randint", "_value": [0, 1000]} for i in range(6)})
        first = [tuner.generate_parameters(i) for i in range(100)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len({tuple(point.values()) for point in first}) == 100
    assert peak < 1_000_000
