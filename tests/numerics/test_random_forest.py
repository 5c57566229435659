"""The forest: its trees are trees over the data, it predicts, and it knows where it knows little."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.numerics.random_forest import Forest, grow_forest


def reached(forest: Forest, point: np.ndarray) -> list[int]:
    """Return the leaf of each tree, found by walking."""
    leaves = []
    for node in range(forest.trees):
        while forest.column[node] >= 0:
            node = forest.left[node] + int(point[forest.column[node]] > forest.threshold[node])
        leaves.append(int(node))
    return leaves


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))
def test_predictions_are_those_of_a_walk_through_each_tree(n: int, f: int, leaf: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, targets = rng.integers(0, 4, (n, f)) / 3, rng.normal(size=n)
    forest = grow_forest(rng, features, targets, trees=5, leaf=leaf)
    points = rng.random((7, f))
    mean, deviation = forest.predict(points)
    for i, point in enumerate(points):
        leaves = reached(forest, point)
        assert mean[i] == pytest.approx(forest.mean[leaves].mean())
        expected = forest.mean[leaves].var() + forest.variance[leaves].mean()
        assert deviation[i] ** 2 == pytest.approx(max(expected, 1e-10))


@settings(max_examples=20)
@given(st.integers(0, 99))
def test_trees_grow_until_their_leaves_are_pure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.permutation(30)[:, None] / 30
    targets = rng.normal(size=30)
    forest = grow_forest(rng, features, targets, trees=30)
    leaves = forest.column < 0
    assert forest.variance[leaves].max() <= 1e-9
    assert set(forest.mean[leaves].round(6)) <= set(targets.round(6))


def test_the_roots_have_bootstrap_means() -> None:
    targets = np.random.default_rng(0).normal(size=200)
    forest = grow_forest(np.random.default_rng(1), np.arange(200.0)[:, None], targets, trees=300)
    roots = forest.mean[:300]
    assert roots.mean() == pytest.approx(targets.mean(), abs=0.02)
    assert roots.std() == pytest.approx(targets.std() / np.sqrt(200), rel=0.2)


def test_leaves_are_not_smaller_than_asked_for() -> None:
    rng = np.random.default_rng(0)
    features, targets = rng.random((60, 3)), rng.normal(size=60)
    few, many = (grow_forest(np.random.default_rng(1), features, targets, leaf=leaf) for leaf in (1, 10))
    assert len(many.column) < len(few.column) / 4


def test_it_learns_a_function_of_the_columns_that_matter() -> None:
    rng = np.random.default_rng(0)

    def function(x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 1] > 0.6, 2.0, 0.0) + x[:, 3]

    features = rng.random((300, 5))
    points = rng.random((200, 5))
    mean, _ = grow_forest(rng, features, function(features)).predict(points)
    assert np.corrcoef(mean, function(points))[0, 1] > 0.97


def test_it_is_less_sure_between_results_that_differ() -> None:
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.random(40) * 0.4, 0.6 + rng.random(40) * 0.4])[:, None]
    targets = np.where(features[:, 0] > 0.5, 1.0, 0.0)
    _, deviation = grow_forest(rng, features, targets, trees=50).predict(np.array([[0.2], [0.5], [0.8]]))
    assert deviation[1] > 10 * max(deviation[0], deviation[2])


def test_equal_targets_make_a_single_leaf() -> None:
    forest = grow_forest(
        np.random.default_rng(0), np.random.default_rng(1).random((9, 2)), np.ones(9), trees=3
    )
    assert len(forest.column) == 3
    assert forest.predict(np.zeros((1, 2)))[0] == pytest.approx(1.0)
