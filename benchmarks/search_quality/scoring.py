"""From searches to figures: normalised regret, ranks, and how sure one can be of them.

Normalised regret: 0 is the best value known of a task, 1 the median of random searches at the same number of trials,
of ordinary tasks, which have few levels, their mean; clipped at 2. Means over tasks of means over seeds; intervals by
resampling seeds within tasks, and ordinary tasks themselves: there are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tasks

__all__ = ["Scale", "Scores", "mean_ranks", "scale_of", "score"]

_WORST = 2.0
_DRAWS = 1000
_ORDINARY = ("o-", "x-")


@dataclass(frozen=True)
class Scale:
    """Per task the best value known, and what random search has after each number of trials."""

    best: Mapping[str, float]
    random: Mapping[str, Sequence[float]]

    def regret(self, task: str, truth: float, trials: int) -> float:
        """Return the normalised regret of a value after a number of trials."""
        if math.isnan(truth):
            return _WORST
        best, reference = self.best[task], self.random[task][trials - 1]
        if reference <= best:
            return 0.0 if truth <= best else _WORST
        return min(_WORST, max(0.0, (truth - best) / (reference - best)))


@dataclass(frozen=True)
class Scores:
    """Of one optimiser: the regrets by task, shape (seeds, budgets), at each of `trials`."""

    optimiser: str
    trials: Sequence[int]
    regrets: Mapping[str, np.ndarray]
    ms: float

    def mean(self, index: int) -> float:
        """Return the mean over tasks of the means over seeds."""
        return float(np.mean([regret[:, index].mean() for regret in self.regrets.values()]))

    def interval(self, index: int) -> tuple[float, float]:
        """Return the 95 % interval of the mean, by resampling the seeds of each task."""
        return _interval({name: regret[:, index] for name, regret in self.regrets.items()})

    def less(self, other: Scores, index: int) -> tuple[float, float, float]:
        """Return the mean of this regret less the other's, seed by seed, with its 95 % interval."""
        names = [name for name in self.regrets if name in other.regrets]
        differences = {}
        for name in names:
            one, two = self.regrets[name][:, index], other.regrets[name][:, index]
            differences[name] = one[: len(two)] - two[: len(one)]
        low, high = _interval(differences)
        return float(np.mean([found.mean() for found in differences.values()])), low, high


def _interval(by_task: Mapping[str, np.ndarray]) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    drawn = [
        found[rng.integers(len(found), size=(_DRAWS, len(found)))].mean(axis=1) for found in by_task.values()
    ]
    means = np.array(drawn)
    if all(name.startswith(_ORDINARY) for name in by_task):
        means = np.take_along_axis(means, rng.integers(len(means), size=means.shape), axis=0)
    low, high = np.quantile(means.mean(axis=0), [0.025, 0.975])
    return float(low), float(high)


def _all_names() -> list[str]:
    return [*tasks.names(), *tasks.curve_tasks()]


def scale_of(rows: Sequence[Mapping[str, Any]], random: Sequence[Mapping[str, Any]], trials: int) -> Scale:
    """Make the scale from random searches, and from the best of all rows where the minimum is unknown."""
    best: dict[str, float] = {}
    medians: dict[str, list[float]] = {}
    for name in _all_names():
        found = [value for row in rows if row["task"] == name for value in row["truths"] if value == value]
        known = None if name in tasks.curve_tasks() else tasks.make(name).best
        best[name] = known if known is not None else min(found, default=math.nan)
        curves = [row["truths"][:trials] for row in random if row["task"] == name]
        if curves:
            known = np.array(curves, dtype=float)
            if name.startswith(_ORDINARY):
                medians[name] = list(np.nan_to_num(known, nan=np.nanmax(known)).mean(axis=0))
            else:
                medians[name] = list(np.median(np.nan_to_num(known, nan=np.inf), axis=0))
    return Scale(best, medians)


def score(optimiser: str, rows: Sequence[Mapping[str, Any]], scale: Scale, trials: Sequence[int]) -> Scores:
    """Return the regrets of an optimiser; tasks on which it has no search are left out."""
    regrets: dict[str, np.ndarray] = {}
    for name in _all_names():
        found = [row for row in rows if row["task"] == name]
        if found and name in scale.random:
            regrets[name] = np.array(
                [[scale.regret(name, row["truths"][n - 1], n) for n in trials] for row in found]
            )
    late = [ms for row in rows for ms in row["ms"][-20:]]
    return Scores(optimiser, trials, regrets, float(np.median(late)) if late else math.nan)


def mean_ranks(scores: Sequence[Scores], index: int) -> list[float]:
    """Return the mean over tasks of the rank among the optimisers that ran on it; 1 is the best."""
    ranks: list[list[float]] = [[] for _ in scores]
    for name in _all_names():
        there = [(s.regrets[name][:, index].mean(), i) for i, s in enumerate(scores) if name in s.regrets]
        for value, i in there:
            below = sum(other < value for other, _ in there)
            equal = sum(other == value for other, _ in there)
            ranks[i].append(below + (equal + 1) / 2)
    return [float(np.mean(found)) if found else math.nan for found in ranks]
