"""The volume that a front dominates, and its reference point."""

from __future__ import annotations

import itertools
import math
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.numerics import hypervolume, knee_of, reference_of


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
