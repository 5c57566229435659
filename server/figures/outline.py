"""What is drawn of very many trials, attempts and points: fewer of each, chosen so that the figure looks the same."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...numerics import front_of
from ...protocol import Objective
from .dimensions import Numbers, drawable

MOST_TRIALS = 5_000  # in a table, and so in a figure
_SHARE = 20  # one in so many of them for each kind that must not be missing
_FEWEST = 50  # of each status
_MOST_SPANS = 5_000
_FINEST = 2_000  # stretches of a row: a smaller gap between two of them is invisible
_MOST_CORNERS = 2_000

_NOT_ENDED = ("", "WAITING", "RUNNING", "PAUSED")  # a family without a mean has no status

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
            low, high = one.kept_range
            is_kept &= (self.values[one.name] >= low) & (self.values[one.name] <= high)
        return np.flatnonzero(is_kept)

    def results(self, metric: str) -> Numbers:
        """Return all results of a metric in the order of the trials, shape (k,)."""
        return self.values[metric][self.finished(metric)]

    def ended(self) -> Places:
        """Return how many trials have ended up to each in the order of their numbers, shape (n,)."""
        return np.cumsum(~np.isin(self.statuses, _NOT_ENDED), dtype=np.int64)

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
        """Return the numbers of at most 5,000 trials, such that what a figure of them shows is true of all.

        For each objective they include the best trials, those that were a new best, and the extremes of equal pieces of
        time; with several objectives also the front. The others are spread evenly over time, with some of each status.
        """
        if len(self) <= MOST_TRIALS:
            return set(self.numbers.tolist())
        kept = np.zeros(len(self), dtype=bool)
        for places in self._notable(objectives, limits):
            kept[places] = True
        left = MOST_TRIALS - int(kept.sum())
        groups = [np.flatnonzero((self.statuses == one) & ~kept) for one in set(self.statuses.tolist())]
        least = [min(len(group), _FEWEST) for group in groups]
        spare, total = left - sum(least), sum(map(len, groups)) - sum(least)
        for group, few in zip(groups, least, strict=True):
            kept[evenly(group, few + spare * (len(group) - few) // max(total, 1))] = True
        return set(self.numbers[kept].tolist())

    def _notable(self, objectives: Sequence[Objective], limits: Sequence[Objective]) -> Iterator[Places]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One attempt of a trial on a worker, or `count` attempts that followed each other; `end` is None while it runs."""

    number: int
    worker: str
    start: float
    end: float | None
    status: str
    count: int = 1


def joined(spans: Iterable[Span], apart: Container[int] = ()) -> list[Span]:
    """Return at most some thousand spans: those of one worker and status that follow each other become one.

    `spans` are in the order of their start. Spans of trials in `apart`, and those that still run, are never joined.

    >>> work = [Span(number=n, worker="a", start=n, end=n + 1, status="FAILED") for n in range(9)]
    >>> [(one.start, one.end, one.count) for one in joined(work, apart=[5])]
    [(0, 5, 5), (5, 6, 1), (6, 9, 3)]
    """
    kept, gap, rest = list[Span](), 0.0, iter(spans)
    while more := list(islice(rest, _MOST_SPANS)):
        kept = _joined([*kept, *more], gap, apart)
        seconds = kept[-1].start - kept[0].start
        while len(kept) > _MOST_SPANS and gap < seconds:
            gap = max(2 * gap, seconds / _FINEST)
            kept = _joined(kept, gap, apart)
    return kept


def _joined(spans: Iterable[Span], gap: float, apart: Container[int]) -> list[Span]:
    kept, last = list[Span](), dict[tuple[str, str], int]()
    for span in spans:
        place = last.get((span.worker, span.status))
        end = -math.inf if place is None else kept[place].end
        if span.end is None or span.number in apart:
            kept.append(span)
        elif place is not None and end is not None and span.start <= end + gap:
            before = kept[place]
            kept[place] = replace(before, end=max(end, span.end), count=before.count + span.count)
        else:
            last[span.worker, span.status] = len(kept)
            kept.append(span)
    return kept


def best_so_far(values: Numbers, direction: str | None) -> Numbers:
    """Return the best of all values up to each, shape (n,).

    >>> best_so_far(np.array([3.0, 1.0, 2.0]), "minimize").tolist()
    [3.0, 1.0, 1.0]
    """
    best = np.minimum if direction == "minimize" else np.maximum
    return best.accumulate(values) if values.size else values


def rises(best: Numbers) -> NDArray[np.int64]:
    """Return the places at which a staircase changes, including the first.

    >>> rises(np.array([3.0, 1.0, 1.0, 0.5])).tolist()
    [0, 1, 3]
    """
    return np.flatnonzero(np.diff(best, prepend=np.nan) != 0)


def evenly(items: NDArray[Any], count: int) -> NDArray[Any]:
    """Return at most this many items, evenly spread, including the first and the last.

    >>> evenly(np.arange(10), 4).tolist()
    [0, 3, 6, 9]
    """
    return items if len(items) <= count else items[np.linspace(0, len(items) - 1, count).astype(int)]


def corners(x: NDArray[Any], y: Numbers) -> tuple[NDArray[Any], Numbers]:
    """Return the points at which a staircase changes, at most 2,000, and its last point; a short one as it is.

    >>> [ends.tolist() for ends in corners(np.arange(9999), np.repeat([2.0, 1.0], [9000, 999]))]
    [[0, 9000, 9998], [2.0, 1.0, 1.0]]
    """
    if len(x) <= _MOST_CORNERS:
        return x, y
    kept = np.append(evenly(rises(y), _MOST_CORNERS), len(x) - 1)
    return x[kept], y[kept]


def downsampled(steps: ArrayLike, values: ArrayLike, limit: int) -> tuple[Numbers, Numbers]:
    """Return at most `limit` (at least 4) points of a curve, shapes (n,): its ends, and the extremes of equal pieces.

    Extremes are kept because spikes matter most; NaN and infinities are left out.

    >>> steps, values = downsampled(range(1000), [0.0] * 500 + [9.0] + [0.0] * 499, 10)
    >>> len(steps) <= 10, values.max(), steps[0], steps[-1]
    (True, np.float64(9.0), np.float64(0.0), np.float64(999.0))
    """
    x, y = np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64)
    usable = np.isfinite(drawable(y))
    x, y = x[usable], y[usable]
    if y.size <= max(limit, 4):
        return x, y
    pieces = np.array_split(np.arange(1, y.size - 1), max((limit - 2) // 2, 1))
    extremes = [(int(piece[y[piece].argmin()]), int(piece[y[piece].argmax()])) for piece in pieces]
    kept = sorted({0, y.size - 1, *(index for pair in extremes for index in pair)})
    return x[kept], y[kept]
