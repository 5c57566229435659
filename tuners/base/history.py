"""Every point that a tuner suggested or imported, ranked by loss."""

from __future__ import annotations

import numpy as np

from ...numerics import Floats, Ints
from .embedding import Layout

_GROWTH = 64
_MOST_SHIFTS = 64  # results that are ranked one by one: of more, one sort is faster


class History:
    """Points in order of arrival, with a loss once it is known; the lower the better, inf for a failure.

    A result is recorded in O(1), and ranked when the ranking is next needed: a few by O(log n) comparisons and one
    shift of an array each, many by one sort.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.count = 0
        self.finished = 0
        self._units = np.empty((0, layout.dimension))
        self._losses = np.empty(0)
        self._ranked = np.empty(0, dtype=np.int64)
        self._sorted_losses = np.empty(0)
        self._count_ranked = 0
        # Rows whose loss came or changed, with the loss they are ranked by.
        self._unranked: dict[int, float] = {}

    def add(self, units: Floats) -> int:
        """Add a point without a loss, shape (d,), NaN where inactive; returns its row."""
        row = self.count
        if row == len(self._units):
            self._grow()
        self._units[row] = units
        self._losses[row] = np.nan
        self.count += 1
        return row

    def settle(self, row: int, loss: float) -> None:
        """Set or replace the loss of a point."""
        old = float(self._losses[row])
        self._unranked.setdefault(row, old)
        self._losses[row] = loss
        if old != old:
            self.finished += 1

    def loss(self, row: int) -> float:
        """Return the loss of a point, NaN while it is not known."""
        return float(self._losses[row])

    def _rank(self) -> None:
        """Rank the results since the last call."""
        if len(self._unranked) > _MOST_SHIFTS:
            self._sort()
        for row, old in self._unranked.items():
            if old == old:
                self._remove(row, old)
            self._insert(row, float(self._losses[row]))
        self._unranked.clear()

    def _sort(self) -> None:
        """Rank all results at once: equal ones in order of arrival, as one by one."""
        n, rows = self._count_ranked, np.fromiter(self._unranked, dtype=np.int64)
        kept = ~np.isin(self._ranked[:n], rows)
        ranked = np.concatenate([self._ranked[:n][kept], rows])
        losses = self._losses[ranked]
        order = np.argsort(losses, kind="stable")
        self._count_ranked = n = len(ranked)
        self._ranked[:n], self._sorted_losses[:n] = ranked[order], losses[order]
        self._unranked.clear()

    def _insert(self, row: int, loss: float) -> None:
        n = self._count_ranked
        place = int(np.searchsorted(self._sorted_losses[:n], loss, side="right"))
        self._ranked[place + 1 : n + 1] = self._ranked[place:n]
        self._sorted_losses[place + 1 : n + 1] = self._sorted_losses[place:n]
        self._ranked[place], self._sorted_losses[place] = row, loss
        self._count_ranked = n + 1

    def _remove(self, row: int, loss: float) -> None:
        n = self._count_ranked
        place = int(np.searchsorted(self._sorted_losses[:n], loss, side="left"))
        while self._ranked[place] != row:
            place += 1
        self._ranked[place : n - 1] = self._ranked[place + 1 : n]
        self._sorted_losses[place : n - 1] = self._sorted_losses[place + 1 : n]
        self._count_ranked = n - 1

    @property
    def ranked(self) -> Ints:
        """The rows with a loss, best first; equal losses in order of arrival."""
        self._rank()
        return self._ranked[: self._count_ranked]

    @property
    def losses(self) -> Floats:
        """The losses of `ranked`, ascending."""
        self._rank()
        return self._sorted_losses[: self._count_ranked]

    @property
    def successes(self) -> int:
        """The number of finite losses."""
        return int(np.searchsorted(self.losses, np.inf))

    def units(self, rows: Ints) -> Floats:
        """Return the points of rows, shape (k, d)."""
        return self._units[rows]

    def _arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays with one row per point."""
        return "_units", "_losses", "_ranked", "_sorted_losses"

    def _grow(self) -> None:
        more = max(_GROWTH, self.count)
        for name in self._arrays():
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros((more, *array.shape[1:]), array.dtype)]))
