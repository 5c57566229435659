"""A random regression tree over the unit cube, and the variance that each axis explains in it.

The trees are extremely randomised: at every node one random threshold for each axis is tried and the best taken. The
shares of variance are those of functional ANOVA: a tree is a partition of the cube into boxes, so the mean over all
other axes is exact.

Why not the trees of `random_forest`: those are grown level by level, many at a time, and keep thresholds only. These
keep the boxes that they cut the cube into, which the analysis integrates.

Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 63, 2006
Hutter, Hoos and Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, ICML 2014
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Floats


@dataclass(frozen=True, slots=True)
class Tree:
    """The leaves of a tree: boxes from `low` to `high`, shapes (leaves, d), and their `values`, shape (leaves,)."""

    low: Floats
    high: Floats
    values: Floats


def grow_tree(units: Floats, values: Floats, rng: np.random.Generator, min_leaf: int = 3) -> Tree:
    """Grow a tree on points of the unit cube, shape (n, d), and their values, shape (n,).

    >>> rng = np.random.default_rng(0)
    >>> units = rng.random((200, 2))
    >>> tree = grow_tree(units, (units[:, 0] > 0.5) * 1.0, rng)
    >>> shares, rest = main_effects(tree)
    >>> bool(shares[0] > 0.8), bool(shares[1] < 0.1)
    (True, True)
    """
    dimension = units.shape[1]
    leaves: list[tuple[Floats, Floats, float]] = []
    pending = [(np.arange(len(values)), np.zeros(dimension), np.ones(dimension))]
    while pending:
        rows, low, high = pending.pop()
        split = _best_split(units[rows], values[rows], rng, min_leaf)
        if split is None:
            leaves.append((low, high, float(values[rows].mean())))
            continue
        axis, threshold = split
        is_left = units[rows, axis] < threshold
        left_high, right_low = high.copy(), low.copy()
        left_high[axis] = right_low[axis] = threshold
        pending += [(rows[is_left], low, left_high), (rows[~is_left], right_low, high)]
    lows, highs, means = zip(*leaves, strict=True)
    return Tree(np.array(lows), np.array(highs), np.array(means))


def _best_split(
    units: Floats, values: Floats, rng: np.random.Generator, min_leaf: int
) -> tuple[int, float] | None:
    """Return the axis and the threshold, out of one random threshold each, that lower the squared error most."""
    count = len(values)
    if count < 2 * min_leaf or np.ptp(values) == 0.0:
        return None
    low, high = units.min(axis=0), units.max(axis=0)
    thresholds = low + rng.random(units.shape[1]) * (high - low)
    is_left = units < thresholds
    left = is_left.sum(axis=0)
    sums = values @ is_left
    usable = (left >= min_leaf) & (count - left >= min_leaf)
    if not usable.any():
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = sums**2 / left + (values.sum() - sums) ** 2 / (count - left)
    axis = int(np.where(usable, gain, -np.inf).argmax())
    return axis, float(thresholds[axis])


def predicted(tree: Tree, units: Floats) -> Floats:
    """Return the values of a tree at points of the cube, shape (n, d) -> (n,)."""
    inside = np.ones((len(units), len(tree.values)), dtype=bool)
    for axis in range(units.shape[1]):
        place, low, high = units[:, axis, None], tree.low[None, :, axis], tree.high[None, :, axis]
        inside &= (place >= low) & ((place < high) | (high == 1.0))
    return tree.values[inside.argmax(axis=1)]


def main_effects(tree: Tree) -> tuple[Floats, float]:
    """Return the share of the tree's variance that each axis explains alone, shape (d,), and what only several explain.

    Hutter, Hoos and Leyton-Brown 2014, eqs. 8 to 10. A tree without variance yields zeros.
    """
    widths = tree.high - tree.low
    volumes = widths.prod(axis=1)
    mean = float(volumes @ tree.values)
    total = float(volumes @ (tree.values - mean) ** 2)
    if total <= 1e-300:
        return np.zeros(widths.shape[1]), 0.0
    alone = np.array([_alone(tree, volumes, mean, axis) for axis in range(widths.shape[1])]) / total
    return alone, max(1.0 - float(alone.sum()), 0.0)


def _alone(tree: Tree, volumes: Floats, mean: float, axis: int) -> float:
    """Return the variance of the mean over all other axes, along one axis."""
    low, high = tree.low[:, axis], tree.high[:, axis]
    edges = np.unique(np.concatenate([low, high]))
    # Each leaf adds its value to every piece between its ends: a sum of steps, up at one end and down at the other.
    weights = volumes / (high - low) * tree.values
    steps = np.zeros(len(edges))
    np.add.at(steps, np.searchsorted(edges, low), weights)
    np.add.at(steps, np.searchsorted(edges, high), -weights)
    marginal = steps.cumsum()[:-1]
    return float(np.diff(edges) @ (marginal - mean) ** 2)
