"""Fronts: what nothing dominates, the ranks behind it, and the knee."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.numerics import added, front_of, is_nondominated, knee_of, nondominated_ranks

points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=20)


@settings(max_examples=40)
@given(points)
def test_ranks_are_those_of_peeling_fronts_one_by_one(found: list[tuple[int, int]]) -> None:
    losses = np.array(found, dtype=float)
    left, expected, rank = list(range(len(found))), {}, 0
    while left:
        first = [i for i in left if not any(dominates(losses[j], losses[i]) for j in left)]
        expected |= dict.fromkeys(first, rank)
        left, rank = [i for i in left if i not in first], rank + 1
    assert nondominated_ranks(losses).tolist() == [expected[i] for i in range(len(found))]
    assert is_nondominated(losses).tolist() == [expected[i] == 0 for i in range(len(found))]


def dominates(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one <= other).all() and (one < other).any())


def test_front_grows_as_the_front_of_all() -> None:
    chance = random.Random(7)
    points = [tuple(float(chance.randrange(5)) for _ in range(3)) for _ in range(60)]
    front: list[tuple[float, ...]] = []
    for point in points:
        front = added(front, point) or front
    assert set(front) == set(front_of(dict(enumerate(points))).values())


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=30))
def test_front_is_what_nothing_dominates(points: list[tuple[int, ...]]) -> None:
    def dominates(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))

    expected = [n for n, point in enumerate(points) if not any(dominates(other, point) for other in points)]
    assert list(front_of(dict(enumerate(points)))) == expected


def test_knee_is_farthest_from_the_line_through_the_ends() -> None:
    front = {3: (0.0, 100.0), 5: (5.0, 40.0), 7: (2.0, 30.0), 9: (10.0, 0.0)}
    assert knee_of(front) == 7
    assert knee_of({1: (0.0, 0.0, 1.0), 2: (1.0, 0.0, 0.0), 3: (0.0, 1.0, 0.0), 4: (0.2, 0.2, 0.2)}) == 4


@pytest.mark.parametrize("tenths", [range(11), (0, 2, 9, 10)])
def test_straight_front_has_no_knee(tenths: Sequence[int]) -> None:
    assert knee_of({n: (0.1 * n, 0.7 - 0.07 * n) for n in tenths}) is None
    assert knee_of({n: (0.1 * n, 0.7 - 0.07 * n - 1e-6 * (n == 9)) for n in tenths}) == 9


@pytest.mark.parametrize("front", [{}, {1: (0.0, 1.0)}, {1: (0.0, 1.0), 2: (1.0, 0.0), 3: (1.0, 0.0)}])
def test_front_of_two_points_has_no_knee(front: dict[int, tuple[float, ...]]) -> None:
    assert knee_of(front) is None
