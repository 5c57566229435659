"""What a model-based tuner knows: every point it suggested or was told of, ranked by loss."""

from __future__ import annotations

import numpy as np

from .layout import Floats, Ints, Layout
from .parzen import features_of, log_normaliser

_GROWTH = 64


class History:
    """Points in order of arrival, with a loss once it is known; the lower the better, inf for a failure.

    Adding a result costs O(log n) comparisons and one shift of an array of integers.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.count = 0
        self._units = np.empty((0, layout.dimension))
        self._codes = np.empty((0, len(layout.choices)), dtype=np.int64)
        self._features = np.empty((0, 4 * len(layout.numeric)))
        self._losses = np.empty(0)
        self._ranked = np.empty(0, dtype=np.int64)
        self._sorted_losses = np.empty(0)
        self.finished = 0
        self._bandwidth = np.ones(len(layout.numeric))

    def add(self, units: Floats) -> int:
        """Add a point without a loss, shape (d,), NaN where inactive; returns its row."""
        row = self.count
        if row == len(self._units):
            self._grow()
        self._units[row] = units
        self._codes[row] = self.layout.codes(units[None])
        self._features[row] = features_of(self.layout, units[None], self._bandwidth)
        self._losses[row] = np.nan
        self.count += 1
        return row

    def settle(self, row: int, loss: float) -> None:
        """Give a point its loss, or another one than it had."""
        old = self._losses[row]
        if old == old:
            self._unrank(row, old)
        n = self.finished
        place = int(np.searchsorted(self._sorted_losses[:n], loss, side="right"))
        self._ranked[place + 1 : n + 1] = self._ranked[place:n]
        self._sorted_losses[place + 1 : n + 1] = self._sorted_losses[place:n]
        self._ranked[place], self._sorted_losses[place] = row, loss
        self._losses[row] = loss
        self.finished = n + 1

    def _unrank(self, row: int, loss: float) -> None:
        n = self.finished
        place = int(np.searchsorted(self._sorted_losses[:n], loss, side="left"))
        while self._ranked[place] != row:
            place += 1
        self._ranked[place : n - 1] = self._ranked[place + 1 : n]
        self._sorted_losses[place : n - 1] = self._sorted_losses[place + 1 : n]
        self.finished = n - 1

    @property
    def ranked(self) -> Ints:
        """The rows with a loss, best first; equal losses in order of arrival."""
        return self._ranked[: self.finished]

    @property
    def losses(self) -> Floats:
        """The losses of `ranked`, ascending."""
        return self._sorted_losses[: self.finished]

    @property
    def successes(self) -> int:
        """How many losses are finite."""
        return int(np.searchsorted(self.losses, np.inf))

    def units(self, rows: Ints) -> Floats:
        """Return the points of rows, shape (k, d)."""
        return self._units[rows]

    def codes(self, rows: Ints) -> Ints:
        """Return the option indices of rows, shape (k, c)."""
        return self._codes[rows]

    def features(self, rows: Ints, bandwidth: Floats) -> Floats:
        """Return the features of rows for the kernels of this bandwidth, shape (k, 4 p)."""
        if not np.array_equal(bandwidth, self._bandwidth):
            # Kept from call to call: the bandwidth of a large set changes rarely.
            p = len(self.layout.numeric)
            known = self._features[: self.count]
            known[:, 3 * p :] = known[:, :p] * log_normaliser(known[:, p : 2 * p], bandwidth)
            self._bandwidth = bandwidth
        return self._features[rows]

    def _grow(self) -> None:
        room = max(_GROWTH, self.count)
        for name in ("_units", "_codes", "_features", "_losses", "_ranked", "_sorted_losses"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((room, *array.shape[1:]), array.dtype)]))
