"""NSGA: it conforms, keeps what no other result beats, beats random search, keeps limits, and survives a resume."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.testing import SPACES
from pitchpipe.tuners import NSGATuner, RandomTuner, Tuner
from pitchpipe.tuners.nsga import niched, reference_points

from .searches import search, started, suite

TWO: list[dict[str, Any]] = [{"direction": "minimize"}, {"name": "gain", "direction": "maximize"}]
LIMITED: list[dict[str, Any]] = [*TWO, {"name": "ms", "constraint": "<= 1"}]
SPACE: dict[str, Any] = {
    **{name: {"_type": "uniform", "_value": [0, 1]} for name in "tabc"},
    "n": {"_type": "randint", "_value": [0, 10]},
    "kind": {"_type": "choice", "_value": ["x", "y", "z"]},
}


TestNSGA = suite(
    lambda seed, mode: NSGATuner(mode, population_size=6, seed=seed), trials=20, many_results=500
)


def made(objectives: list[dict[str, Any]], space: Any = SPACE, **arguments: Any) -> NSGATuner:
    return started(NSGATuner(**arguments), space, objectives=objectives)


def away(point: dict[str, Any]) -> float:
    """Return how far a point is from the front, on which `t` is any number."""
    far = sum(abs(point[name] - best) for name, best in zip("abc", (0.2, 0.5, 0.9), strict=True))
    return far + abs(point["n"] - 3) / 10 + "zyx".index(point["kind"]) / 3


def report(point: dict[str, Any]) -> dict[str, float]:
    return {
        "default": point["t"] + away(point),
        "gain": point["t"] - away(point),
        "ms": 20 * abs(point["t"] - 0.7),
    }


def run(tuner: Tuner, count: int, first: int = 0) -> list[dict[str, Any]]:
    """Run trials one after the other, and return their points."""
    points: list[dict[str, Any]] = []
    search(tuner, lambda point: points.append(point) or report(point), count, first)
    return points


@pytest.mark.parametrize("niching", ["crowding", "reference_points"])
def test_it_approaches_the_whole_front(niching: str) -> None:
    random = RandomTuner(seed=0)
    random.update_search_space(SPACE)
    distance = np.median([away(random.generate_parameters(i)) for i in range(100)])
    for seed in range(2):
        points = run(made(TWO, niching=niching, seed=seed), 200)[140:]
        assert np.median([away(point) for point in points]) < 0.5 * distance
        assert np.ptp([point["t"] for point in points]) > 0.6


def test_it_learns_where_limits_are_kept() -> None:
    for seed in range(2):
        points = run(made(LIMITED, seed=seed), 140)
        kept = [report(point)["ms"] <= 1 for point in points]  # of random points, one in ten
        assert sum(kept[70:]) > 35


results = st.lists(st.tuples(*[st.integers(0, 5)] * 4), min_size=1, max_size=40)


@settings(max_examples=30)
@given(results, st.sampled_from(["crowding", "reference_points"]))
def test_no_result_that_left_the_population_beats_one_that_stayed(
    found: list[tuple[int, int, int, int]], niching: str
) -> None:
    names = ("default", "b", "c")
    goals = [{"name": name, "direction": "minimize"} for name in names]
    space = {"x": {"_type": "randint", "_value": [0, len(found)]}}
    tuner = made([*goals, {"name": "ms", "constraint": "<= 3"}], space, population_size=8, niching=niching)
    reports = [dict(zip((*names, "ms"), values, strict=True)) for values in found]
    tuner.import_data([{"parameter": {"x": i}, "value": value} for i, value in enumerate(reports)])
    tuner._select()
    stayed = set(tuner._members)
    assert len(stayed) == min(len(found), 8)
    for left in set(range(len(found))) - stayed:
        assert not [row for row in stayed if beats(found[left], found[row])]


def beats(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether one result dominates another, which violates its limit if the last number is above 3."""
    if max(one[-1], other[-1]) > 3:
        return one[-1] < other[-1] and other[-1] > 3
    return all(a <= b for a, b in zip(one[:-1], other[:-1], strict=True)) and one[:-1] != other[:-1]


def test_of_a_front_the_ends_and_the_most_isolated_stay() -> None:
    tuner = made(TWO, {"x": {"_type": "randint", "_value": [0, 5]}}, population_size=3)
    for x, value in enumerate((0.0, 0.1, 0.2, 0.9, 1.0)):
        tuner.import_data([{"parameter": {"x": x}, "value": {"default": value, "gain": value}}])
    tuner._select()
    assert sorted(tuner._members) == [0, 2, 4] or sorted(tuner._members) == [0, 3, 4]


@pytest.mark.parametrize("objectives", [TWO, LIMITED])
@pytest.mark.parametrize("space", [SPACES["nested"], SPACES["three deep"], SPACES["mixed"]])
def test_a_resumed_search_continues_as_the_original_with_parallel_and_failed_trials(
    objectives: list[dict[str, Any]], space: Any
) -> None:
    tuner = made(objectives, space, population_size=6, seed=3)
    running = dict(enumerate(tuner.generate_multiple_parameters(list(range(8)))))
    end = ender(len(running))
    for key in range(8, 40):
        end(tuner, running)
        running[key] = tuner.generate_parameters(key)
    restored = pickle.loads(pickle.dumps(tuner))
    copies = dict(running)
    for key in range(40, 60):
        for each, alive in ((tuner, running), (restored, copies)):
            end(each, alive)
            alive[key] = each.generate_parameters(key)
        assert running == copies


def ender(count: int) -> Callable[[Tuner, dict[int, Any]], None]:
    """Return a function that ends one of the running trials: with a result, with NaN, or without one."""

    def end(tuner: Tuner, running: dict[int, Any]) -> None:
        key = sorted(running)[max(running) % count]
        point = running.pop(key)
        if key % 5:
            size = float(len(str(point)))
            value = math.nan if key % 7 == 0 else size
            tuner.receive_trial_result(key, point, {"default": value, "gain": key % 11, "ms": size / 40})
        tuner.trial_end(key, key % 5 != 0)

    return end


def test_a_second_result_replaces_the_first() -> None:
    tuner = made(TWO, population_size=4, seed=0)
    points = run(tuner, 8)
    for i, point in enumerate(points):
        tuner.receive_trial_result(i, point, {"default": math.nan, "gain": 1.0})
    tuner._select()
    assert tuner._members == []
    run(tuner, 3, first=8)


def test_from_four_objectives_on_niches_are_around_reference_points() -> None:
    names = ("default", "b", "c", "d")
    goals = [{"name": name, "direction": "minimize"} for name in names]

    def reports(point: dict[str, Any]) -> dict[str, float]:
        return {name: abs(point["t"] - k / 3) for k, name in enumerate(names)}

    by_niches = [
        search(made(goals, niching=niching, seed=1), reports, 60)
        for niching in ("auto", "reference_points", "crowding")
    ]
    assert by_niches[0] == by_niches[1] != by_niches[2]


def test_children_are_near_their_parents_and_mix_them() -> None:
    space = {f"x{i}": {"_type": "uniform", "_value": [0, 1]} for i in range(40)}
    tuner = made(TWO, space, population_size=2, seed=0)
    for side, value in ((0.1, 0.0), (0.9, 1.0)):
        parameters = dict.fromkeys(space, side)
        tuner.import_data([{"parameter": parameters, "value": {"default": value, "gain": value}}] * 20)
    children = [list(tuner.generate_parameters(i).values()) for i in range(40)]
    shares = [np.mean([x > 0.5 for x in child]) for child in children]
    assert sum(0.2 < share < 0.8 for share in shares) > 5  # others have the same parent twice
    changes = [sum(min(abs(x - 0.1), abs(x - 0.9)) > 0.35 for x in child) for child in children]
    assert max(changes) < 10


def test_priors_shape_the_first_population() -> None:
    def first(priors: dict[str, Any]) -> list[dict[str, Any]]:
        tuner = started(NSGATuner(population_size=20, seed=3), SPACE, objectives=TWO, priors=priors)
        return [tuner.generate_parameters(i) for i in range(20)]

    points = first({"a": {"centre": 0.9, "confidence": 0.9}, "kind": {"centre": "y", "confidence": 0.9}})
    assert (points[0]["a"], points[0]["kind"]) == (pytest.approx(0.9), "y")
    assert sum(abs(point["a"] - 0.9) < 0.2 for point in points) >= 10
    assert min(point["a"] for point in points) < 0.5  # half of them ignore the priors
    assert len({point["b"] for point in points}) == 20


@pytest.mark.parametrize("objectives", [2, 3, 4, 5, 8])
def test_directions_are_distinct_and_have_every_axis(objectives: int) -> None:
    points = reference_points(objectives, 50)
    assert objectives <= len(points) <= 50
    assert len(np.unique(points.round(9), axis=0)) == len(points)
    assert points.min() >= 0
    assert [row for row in np.eye(objectives).tolist() if row in points.tolist()] == np.eye(
        objectives
    ).tolist()
    assert objectives == 2 or (points > 0).all(axis=1).any()  # and some weigh all objectives


def test_a_grid_is_as_fine_as_the_number_allows() -> None:
    assert [len(reference_points(3, most)) for most in (10, 14, 15)] == [10, 10, 15]
    assert len(reference_points(6, 2)) == 7  # the axes and the middle: there is no coarser one


def test_each_direction_keeps_the_nearest() -> None:
    front = np.array([[0.0, 30.0], [0.02, 29.0], [0.48, 15.0], [0.5, 15.1], [0.97, 1.0], [1.0, 0.0]])
    kept = niched(np.random.default_rng(0), front, np.zeros(6, dtype=bool), 3, reference_points(2, 3))
    assert kept.tolist() == [True, False, False, True, False, True]


def test_niches_of_those_kept_already_come_last() -> None:
    front = np.array([[0.0, 1.0], [0.05, 0.95], [1.0, 0.0]])
    kept = niched(np.random.default_rng(0), front, np.array([True, False, False]), 2, reference_points(2, 2))
    assert kept.tolist() == [True, False, True]


@given(
    st.lists(st.tuples(*[st.floats(-1e308, 1e308)] * 3), min_size=1, max_size=12),
    st.integers(0, 12),
    st.integers(0, 4),
)
def test_the_number_is_kept_for_any_losses(losses: list[tuple[float, ...]], count: int, already: int) -> None:
    before = np.arange(len(losses)) < already
    count = min(max(count, int(before.sum())), len(losses))
    kept = niched(np.random.default_rng(0), np.array(losses), before, count, reference_points(3, 10))
    assert kept.sum() == count
    assert kept[before].all()
