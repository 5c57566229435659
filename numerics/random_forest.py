"""A regression forest whose trees are grown side by side, level by level, with numpy alone.

Breiman, Random Forests, Machine Learning 45, 2001
Geurts, Ernst and Wehenkel, Extremely Randomized Trees, Machine Learning 63, 2006 (thresholds drawn at random)
Hutter et al., Algorithm Runtime Prediction: Methods and Evaluation, Artificial Intelligence 206, 2014 (variance)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Bools, Floats, Ints

_DEEPEST = 40
_LEAST_VARIANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Forest:
    """Trees as flat arrays over all nodes; the roots come first, the right child follows the left one.

    `column` is -1 for a leaf. `mean` and `variance` are those of the targets that reached a node.
    """

    trees: int
    column: Ints
    threshold: Floats
    left: Ints
    mean: Floats
    variance: Floats

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation at features of shape (m, f).

        The variance is that between the trees plus the mean of those within their leaves (Hutter et al. 2014, 4.3.2).
        """
        node = np.repeat(np.arange(self.trees)[:, None], len(features), axis=1)
        place = np.arange(len(features))[None]
        for _ in range(_DEEPEST):
            column = self.column[node]
            inner = column >= 0
            if not inner.any():
                break
            beyond = features[place, np.maximum(column, 0)] > self.threshold[node]
            node = np.where(inner, self.left[node] + beyond, node)
        means = self.mean[node]
        variance = means.var(axis=0) + self.variance[node].mean(axis=0)
        return means.mean(axis=0), np.sqrt(np.maximum(variance, _LEAST_VARIANCE))


def grow_forest(
    rng: np.random.Generator,
    features: Floats,
    targets: Floats,
    trees: int = 20,
    leaf: int = 1,
    share: float = 5 / 6,
    thresholds: int = 2,
) -> Forest:
    """Return a forest grown on features (n, f) and targets (n,).

    Each tree has a bootstrap sample. A node of at least 2 `leaf` targets is split where that explains most variance,
    among `thresholds` random thresholds of each of a random `share` of the columns.

    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> mean, _ = grow_forest(np.random.default_rng(0), x, (x[:, 0] > 0.5) * 1.0).predict(np.array([[0.1], [0.9]]))
    >>> mean.round().tolist()
    [0.0, 1.0]
    """
    n = len(targets)
    rows = rng.integers(n, size=trees * n) if n > 1 else np.zeros(trees, dtype=np.int64)
    level = _Level(rows, np.arange(0, len(rows), max(n, 1)))
    grown: list[tuple[Ints | Floats, ...]] = []
    below = trees  # the number of the first node of the next level
    for depth in range(_DEEPEST):
        y = targets[level.rows]
        count, total = level.counts, level.sums(y)
        mean = total / count
        variance = np.maximum(level.sums(y * y) / count - mean * mean, 0.0)
        open_ = (count >= 2 * leaf) & (variance > _LEAST_VARIANCE) & (depth < _DEEPEST - 1)
        column, cut = _splits(rng, features, targets, level, open_, (leaf, share, thresholds))
        inner = column >= 0
        left = np.where(inner, below + 2 * (np.cumsum(inner) - 1), 0)
        grown.append((column, cut, left, mean, variance))
        if not inner.any():
            break
        below += 2 * int(inner.sum())
        level = level.next(features, column, cut)
    column, cut, left, mean, variance = (np.concatenate(parts) for parts in zip(*grown, strict=True))
    return Forest(trees=trees, column=column, threshold=cut, left=left, mean=mean, variance=variance)


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The nodes of one depth: `rows` of the data, those of one node side by side, beginning at `starts`."""

    rows: Ints
    starts: Ints

    @property
    def counts(self) -> Ints:
        """How many rows each node has."""
        return np.diff(np.append(self.starts, len(self.rows)))

    @property
    def nodes(self) -> Ints:
        """The node of each row."""
        return np.repeat(np.arange(len(self.starts)), self.counts)

    def sums(self, values: Floats | Bools) -> Floats:
        """Return the sums over the rows of each node; values have a row for each of `rows`."""
        return np.add.reduceat(values, self.starts, axis=0)

    def only(self, wanted: Bools) -> _Level:
        """Return some of the nodes."""
        counts = self.counts[wanted]
        return _Level(self.rows[wanted[self.nodes]], np.cumsum(counts) - counts)

    def next(self, features: Floats, column: Ints, cut: Floats) -> _Level:
        """Return the children of the nodes that have a column."""
        inner = column >= 0
        inside = self.only(inner)
        node = inside.nodes
        beyond = features[inside.rows, column[inner][node]] > cut[inner][node]
        child = 2 * node + beyond
        counts = np.bincount(child, minlength=2 * len(inside.starts))
        return _Level(inside.rows[np.argsort(child, kind="stable")], np.cumsum(counts) - counts)


def _splits(
    rng: np.random.Generator,
    features: Floats,
    targets: Floats,
    level: _Level,
    open_: Bools,
    settings: tuple[int, float, int],
) -> tuple[Ints, Floats]:
    """Return the column and the threshold of each node, column -1 where it becomes a leaf."""
    column, cut = np.full(len(open_), -1), np.zeros(len(open_))
    leaf, share, thresholds = settings
    if not open_.any():
        return column, cut
    some = level.only(open_)
    x, y = features[some.rows], targets[some.rows]
    low, high = np.minimum.reduceat(x, some.starts), np.maximum.reduceat(x, some.starts)
    varied = high > low
    looked_at = varied & (rng.random(low.shape) < share)
    looked_at |= varied & ~looked_at.any(axis=1, keepdims=True)
    best, best_cut = np.full(low.shape, -np.inf), low.copy()
    for _ in range(thresholds):
        at = low + rng.random(low.shape) * (high - low)
        gain = np.where(looked_at, _gain(some, x, y, at, leaf), -np.inf)
        best_cut = np.where(gain > best, at, best_cut)
        best = np.maximum(best, gain)
    chosen = np.argmax(best, axis=1)
    place = np.arange(len(chosen))
    is_split = np.isfinite(best[place, chosen])
    column[open_] = np.where(is_split, chosen, -1)
    cut[open_] = best_cut[place, chosen]
    return column, cut


def _gain(level: _Level, x: Floats, y: Floats, at: Floats, leaf: int) -> Floats:
    """Return what a split of each node at each column explains, up to a constant of the node; shape (nodes, f)."""
    first = x <= at[level.nodes]
    count, total = level.counts[:, None].astype(float), level.sums(y)[:, None]
    count_left, total_left = level.sums(first.astype(float)), level.sums(first * y[:, None])
    count_right = count - count_left
    allowed = (count_left >= leaf) & (count_right >= leaf)
    left = total_left**2 / np.maximum(count_left, 1)
    right = (total - total_left) ** 2 / np.maximum(count_right, 1)
    return np.where(allowed, left + right, -np.inf)
