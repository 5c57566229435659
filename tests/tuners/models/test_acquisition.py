"""The expected growth of the dominated volume, against a plain count of a grid and against sampling."""

from __future__ import annotations

import numpy as np
import pytest

from pitchpipe.numerics import is_nondominated
from pitchpipe.tuners.models.acquisition import (
    Boxes,
    log_expected_hypervolume_improvement,
    thinned_front,
)


def some_front(objectives: int, seed: int = 0) -> np.ndarray:
    points = np.random.default_rng(seed).random((40, objectives))
    return points[is_nondominated(points)][:12]


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_boxes_are_disjoint_and_hold_what_is_not_dominated(objectives: int) -> None:
    front, reference = some_front(objectives), np.full(objectives, 1.1)
    boxes = Boxes.left_by(front, reference)
    probes = np.random.default_rng(1).uniform(-0.5, 1.3, (3000, objectives))
    inside = ((probes[:, None] > boxes.lower) & (probes[:, None] <= boxes.upper)).all(axis=2).sum(axis=1)
    dominated = (front[None] <= probes[:, None]).all(axis=2).any(axis=1)
    expected = ~dominated & (probes <= reference).all(axis=1)
    assert inside.tolist() == expected.astype(int).tolist()


def test_points_beyond_the_reference_and_equal_points_change_nothing() -> None:
    front, reference = np.array([[0.2, 0.6], [0.6, 0.2]]), np.array([1.0, 1.0])
    more = np.concatenate([front, front, [[0.1, 1.5], [0.7, 0.7]]])
    assert sorted(Boxes.left_by(more, reference).upper.tolist()) == sorted(
        Boxes.left_by(front, reference).upper.tolist()
    )


def grown(samples: np.ndarray, boxes: Boxes) -> np.ndarray:
    """Return by how much each sample, shape (s, m), makes the dominated volume grow."""
    sides = np.maximum(boxes.upper - np.maximum(boxes.lower, samples[:, None]), 0.0)
    return sides.prod(axis=2).sum(axis=1)


def test_nothing_is_left_below_the_floor() -> None:
    boxes, floor = Boxes.left_by(some_front(3), np.full(3, 1.1)), np.array([-0.1, -0.2, -0.3])
    probes = np.random.default_rng(1).uniform(-0.5, 1.3, (3000, 3))

    def inside(some: Boxes) -> np.ndarray:
        return ((probes[:, None] > some.lower) & (probes[:, None] <= some.upper)).all(axis=2).sum(axis=1)

    assert inside(boxes.above(floor)).tolist() == (inside(boxes) * (probes > floor).all(axis=1)).tolist()


@pytest.mark.parametrize("floor", [-np.inf, -0.1])
@pytest.mark.parametrize("objectives", [2, 3])
def test_expected_growth_is_the_mean_of_samples(objectives: int, floor: float) -> None:
    rng = np.random.default_rng(2)
    boxes = Boxes.left_by(some_front(objectives), np.full(objectives, 1.1)).above(np.full(objectives, floor))
    means, deviations = rng.random((6, objectives)), rng.uniform(0.05, 0.4, (6, objectives))
    found = np.exp(log_expected_hypervolume_improvement(means, deviations, boxes))
    for mean, deviation, value in zip(means, deviations, found, strict=True):
        growth = grown(mean + deviation * rng.standard_normal((10_000, objectives)), boxes)
        assert value == pytest.approx(growth.mean(), abs=5 * growth.std() / 100)


def test_hopeless_candidates_are_still_ranked() -> None:
    boxes = Boxes.left_by(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([2.0, 2.0]))
    means = np.array([[50.0, 50.0], [40.0, 40.0], [60.0, 60.0]])
    scores = log_expected_hypervolume_improvement(means, np.ones_like(means), boxes)
    assert np.isfinite(scores).all()
    assert np.argsort(-scores).tolist() == [1, 0, 2]


def test_both_ways_to_compute_agree() -> None:
    boxes = Boxes.left_by(some_front(2), np.array([1.1, 1.1]))
    means, deviations = np.random.default_rng(3).uniform(0.5, 3.0, (30, 2)), np.full((30, 2), 0.2)
    many = log_expected_hypervolume_improvement(means, deviations, boxes)
    alone = [log_expected_hypervolume_improvement(means[[i]], deviations[[i]], boxes)[0] for i in range(30)]
    near = many > -500
    assert near.sum() >= 20
    np.testing.assert_allclose(np.array(alone)[near], many[near], rtol=1e-6, atol=1e-6)


def test_large_front_keeps_its_extremes() -> None:
    angles = np.linspace(0, np.pi / 2, 300)
    front = np.column_stack([1 - np.sin(angles), 1 - np.cos(angles)])
    thin = thinned_front(np.random.default_rng(0), front)
    assert len(thin) == 200
    assert thin.min(axis=0).tolist() == front.min(axis=0).tolist()
    assert len(thinned_front(np.random.default_rng(0), front[:200])) == 200
