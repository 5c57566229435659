"""Fronts: what nothing dominates, the ranks behind it, the knee, and the volume that a front dominates."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.numerics import (
    added,
    front_of,
    hypervolume,
    is_nondominated,
    knee_of,
    nondominated_ranks,
    reference_of,
)

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


def counted(points: list[tuple[float, ...]], size: int, dimensions: int) -> int:
    """Return the number of unit cells below the point (size, ..., size) that a point covers."""
    cells = [()]
    for _ in range(dimensions):
        cells = [(*cell, place) for cell in cells for place in range(size)]
    return sum(
        any(all(p <= c for p, c in zip(point, cell, strict=True)) for point in points) for cell in cells
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
def test_hypervolume_is_the_number_of_cells_that_are_covered(dimensions: int) -> None:
    chance = random.Random(dimensions)
    for _ in range(8):
        points = [tuple(float(chance.randrange(6)) for _ in range(dimensions)) for _ in range(8)]
        assert hypervolume(points, (5.0,) * dimensions) == counted(points, 5, dimensions)


@pytest.mark.parametrize(("dimensions", "total"), [(4, 8), (5, 5)])
def test_hypervolume_of_many_objectives_is_exact_with_many_points(dimensions: int, total: int) -> None:
    size = total + 1
    cells = list(itertools.product(range(size), repeat=dimensions))
    front = [tuple(map(float, cell)) for cell in cells if sum(cell) == total]
    assert hypervolume(front, (float(size),) * dimensions) == sum(sum(cell) >= total for cell in cells)


def test_points_that_are_not_better_than_the_reference_add_nothing() -> None:
    assert hypervolume([], (1.0, 1.0)) == 0.0
    assert hypervolume([(1.0, 0.0), (0.0, 2.0), (-math.inf, 0.0), (0.5, 0.5)], (1.0, 1.0)) == 0.25


def test_reference_is_given_or_a_tenth_beyond_the_worst() -> None:
    front = [(0.0, 2.0), (10.0, 1.0), (math.inf, 0.0)]
    assert reference_of(front, (None, None)) == pytest.approx((11.0, 2.1))
    assert reference_of(front, (30.0, None)) == pytest.approx((30.0, 2.1))
    assert reference_of([(0.0, -3.0)], (None, None)) == pytest.approx((0.1, -2.7))
    assert reference_of([], (None, 4.0))[1] == 4.0


MOST = sys.float_info.max


@pytest.mark.parametrize("size", [1.0, 1e200, MOST, 1e-200])
def test_knee_and_reference_do_not_depend_on_the_size_of_results(size: float) -> None:
    points = {0: (-1.0, 1.0), 1: (-0.9, -0.6), 2: (0.2, -0.8), 3: (1.0, -1.0)}
    front = {number: tuple(size * value for value in point) for number, point in points.items()}
    assert knee_of(front) == 1
    reference = reference_of(front.values(), (None, None))
    assert reference == pytest.approx((min(1.2 * size, MOST),) * 2)
    assert hypervolume(front.values(), reference) > 0 or size < 1


@given(
    st.integers(1, 4).flatmap(
        lambda size: st.lists(st.tuples(*[st.floats(allow_nan=False)] * size), max_size=6)
    )
)
def test_hypervolume_of_any_results_is_a_number(points: list[tuple[float, ...]]) -> None:
    reference = reference_of(points, [None] * len(points[0] if points else (1,)))
    assert all(map(math.isfinite, reference))
    assert hypervolume(points, reference) >= 0
