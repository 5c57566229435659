"""Reference points are spread over the simplex, and a front is thinned to what is near them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.tuners.models import niched, reference_points


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
