"""The few facts about every trial of an experiment, for figures that draw only some of them: arrays, not objects."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numerics import front_of
from ...protocol import Objective
from .dimensions import drawable
from .drawing import best_so_far, evenly, rises

MOST_TRIALS = 5_000  # in a table, and so in a figure
_SHARE = 20  # of these, one in so many for each kind that must not be missing
_FEWEST = 50  # of each status

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outline:
    """All trials by number, shapes (n,): how and when they ended, and their results by metric, NaN without one.

    >>> rows = [(n, "SUCCEEDED", 1e9 + n, 1.0 / n) for n in range(1, 4)]
    >>> Outline.of(["loss"], [rows]).values["loss"].round(2).tolist()
    [1.0, 0.5, 0.33]
    """

    numbers: NDArray[np.int64]
    statuses: NDArray[np.object_]
    ends: Numbers
    values: Mapping[str, Numbers]

    @classmethod
    def of(cls, metrics: Sequence[str], portions: Iterable[Sequence[tuple[Any, ...]]]) -> Outline:
        """Return the outline of rows (number, status, end, and a value or None of each metric), in any order."""
        parts = [_columns(portion) for portion in portions if portion]
        numbers, statuses, ends, *values = (
            map(np.concatenate, zip(*parts, strict=True))
            if parts
            else [np.empty(0, dtype=kind) for kind in (np.int64, object, *[np.float64] * (1 + len(metrics)))]
        )
        order, has_result = np.argsort(numbers, kind="stable"), statuses == "SUCCEEDED"
        return cls(
            numbers=numbers[order],
            statuses=statuses[order],
            ends=ends[order],
            values={
                name: np.where(has_result, drawable(column), np.nan)[order]
                for name, column in zip(metrics, values, strict=True)
            },
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def finished(self, metric: str, limits: Iterable[Objective] = ()) -> Places:
        """Return the places of the trials that have a result and keep the limits."""
        is_kept = np.isfinite(self.values[metric])
        for one in limits:
            is_kept &= (self.values[one.name] >= one.at_least) & (self.values[one.name] <= one.at_most)
        return np.flatnonzero(is_kept)

    def results(self, metric: str) -> Numbers:
        """Return all results of a metric in the order of the trials, shape (k,)."""
        return self.values[metric][self.finished(metric)]

    def best_line(self, objective: Objective, limits: Iterable[Objective]) -> tuple[Places, Numbers]:
        """Return the numbers of the trials that keep the limits, and the best result up to each, shapes (k,)."""
        places = self.finished(objective.name, limits)
        return self.numbers[places], best_so_far(self.values[objective.name][places], objective.direction)

    def new_bests_by_end(self, objective: Objective, limits: Iterable[Objective]) -> set[int]:
        """Return the numbers of at most 500 trials that were better than all that had ended before."""
        places = self.finished(objective.name, limits)
        places = places[np.isfinite(self.ends[places])]
        places = places[np.argsort(self.ends[places], kind="stable")]
        best = best_so_far(self.values[objective.name][places], objective.direction)
        return set(self.numbers[evenly(places[rises(best)], MOST_TRIALS // 10)].tolist())

    def chosen(self, objectives: Sequence[Objective], limits: Sequence[Objective]) -> set[int]:
        """Return the numbers of at most 5,000 trials to show for all, such that what is seen is true of all.

        By each objective these are the best ones, the new best ones, and the extremes of equal pieces; then the front.
        The others are evenly over time, with some of each status.
        """
        if len(self) <= MOST_TRIALS:
            return set(self.numbers.tolist())
        kept = np.zeros(len(self), dtype=bool)
        for places in self._telling(objectives, limits):
            kept[places] = True
        left = MOST_TRIALS - int(kept.sum())
        groups = [np.flatnonzero((self.statuses == one) & ~kept) for one in set(self.statuses.tolist())]
        least = [min(len(group), _FEWEST) for group in groups]
        spare, total = left - sum(least), sum(map(len, groups)) - sum(least)
        for group, few in zip(groups, least, strict=True):
            kept[evenly(group, few + spare * (len(group) - few) // max(total, 1))] = True
        return set(self.numbers[kept].tolist())

    def _telling(self, objectives: Sequence[Objective], limits: Sequence[Objective]) -> Iterator[Places]:
        some = MOST_TRIALS // _SHARE // len(objectives)
        for one in objectives:
            places, losses = self.finished(one.name), one.sign * self.values[one.name]
            yield places[np.argsort(losses[places], kind="stable")[:some]]
            numbers, best = self.best_line(one, limits)
            yield np.searchsorted(self.numbers, evenly(numbers[rises(best)], some))
            for piece in np.array_split(places, some):
                if len(piece):
                    yield piece[[losses[piece].argmin(), losses[piece].argmax()]]
        if len(objectives) > 1:
            losses = np.stack([one.sign * self.values[one.name] for one in objectives], axis=1)
            usable = self.finished(objectives[0].name, limits)
            points = {place: tuple(losses[place].tolist()) for place in usable.tolist()}
            front = front_of(
                {place: point for place, point in points.items() if all(map(math.isfinite, point))}
            )
            yield evenly(np.array([*front], dtype=np.int64), MOST_TRIALS // _SHARE)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[NDArray[Any]]:
    numbers, statuses, *others = np.array(rows, dtype=object).T
    names = np.array([sys.intern(str(status)) for status in statuses], dtype=object)
    return [numbers.astype(np.int64), names, *(column.astype(np.float64) for column in others)]


def metrics_of(*outcomes: Sequence[Objective]) -> list[str]:
    """Return the names of what is optimised or limited, each once."""
    return list(dict.fromkeys(one.name for some in outcomes for one in some))
