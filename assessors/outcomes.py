"""Reports with several objectives or with limits, and how they compare: feasible first, then by non-dominated rank.

Schmucker et al., Multi-objective Asynchronous Successive Halving, arXiv 2106.12639, 2021; the ranks and the crowding
distance are those of Deb et al., NSGA-II, IEEE Transactions on Evolutionary Computation 6(2), 2002.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..plugins import crowding_distances
from ..protocol import MetricError, Objective, main_objective, metric_value
from .gains import counted

__all__ = ["MedianRanks", "Outcome", "OutcomeReader", "Standing"]

_LARGEST = 1e150  # differences of losses stay finite


@dataclass(frozen=True, slots=True)
class Outcome:
    """The losses of a trial, NaN for an objective that is not known yet.

    `violation` is above 0 if the trial breaks a limit, and infinite if it reported NaN or an infinity.
    """

    losses: tuple[float, ...]
    violation: float = 0.0


class OutcomeReader:
    """Reads outcomes from reports: dicts by the names of the objectives, or numbers, which are the main objective.

    An objective that a report lacks has its latest earlier value.

    >>> reader = OutcomeReader([Objective(), Objective(name="ms", direction=None, at_most=20.0)])
    >>> reader.read([{"default": 0.5, "ms": 25.0}, 0.4], 1)
    Outcome(losses=(0.4,), violation=0.25)
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self._objectives = tuple(objectives)
        self._main = main_objective(objectives).name
        self.goals = tuple(one for one in objectives if one.direction is not None)

    def check(self, report: Any) -> None:
        """Raise `MetricError` for a report without any objective, or with one that is not a number."""
        values = [self._number(report, one.name) for one in self._objectives]
        if all(value is None for value in values):
            names = ", ".join(repr(one.name) for one in self._objectives)
            raise MetricError(f"reported a dict with none of the objectives {names}")

    def read(self, history: Sequence[Any], place: int) -> Outcome:
        """Return the outcome of a trial at a place of its history."""
        values = {one.name: self._latest(history, place, one.name) for one in self._objectives}
        reported = [(one, value) for one in self._objectives if (value := values[one.name]) is not None]
        losses = tuple(_loss(one, values[one.name]) for one in self.goals)
        return Outcome(losses, sum(_violation(one, value) for one, value in reported))

    def shown(self, outcome: Outcome) -> str:
        """Return an outcome in words.

        >>> reader = OutcomeReader([Objective(direction="maximize"), Objective(name="ms", at_most=20.0)])
        >>> reader.shown(Outcome((-0.9, 30.0), 0.5))
        'default 0.9, ms 30 (a limit is broken)'
        """
        if outcome.violation == math.inf:
            return "no finite number"
        pairs = zip(self.goals, outcome.losses, strict=True)
        text = ", ".join(f"{one.name} {one.sign * loss + 0.0:.6g}" for one, loss in pairs if loss == loss)
        return text + " (a limit is broken)" * (outcome.violation > 0)

    def _latest(self, history: Sequence[Any], place: int, name: str) -> float | None:
        values = (self._number(history[i], name) for i in range(place, -1, -1))
        return next((value for value in values if value is not None), None)

    def _number(self, report: Any, name: str) -> float | None:
        if name in report if isinstance(report, Mapping) else name == self._main:
            return metric_value(report, name)
        return None


def _loss(one: Objective, value: float | None) -> float:
    if value is None:
        return math.nan
    return min(max(one.sign * value, -_LARGEST), _LARGEST) if math.isfinite(value) else _LARGEST


def _violation(one: Objective, value: float) -> float:
    """Return by how much a value breaks the limits of its objective, as a share of the limit."""
    if not math.isfinite(value):
        return math.inf
    if not one.is_limited:
        return 0.0
    limit = one.at_most if math.isfinite(one.at_most) else one.at_least
    return max(one.excess({one.name: value}), 0.0) / (abs(limit) or 1.0)


class Standing:
    """The outcomes of trials after the same number of results, and how many of them are better than another.

    Feasible outcomes are ranked by non-dominated fronts; infeasible ones follow, in order of their violation. An
    objective that one of the feasible lacks is left out.

    >>> standing = Standing(2)
    >>> for losses in [(0.0, 2.0), (1.0, 1.0), (2.0, 0.0), (3.0, 3.0)]:
    ...     standing.add(Outcome(losses))
    >>> standing.ahead(Outcome((1.0, 3.0))), standing.better(Outcome((1.0, 1.0)))
    (3, 0)
    """

    def __init__(self, goals: int) -> None:
        self._losses = np.empty((0, goals))  # of the feasible
        self._violations: list[float] = []  # of the others, ascending
        self._ranks = np.empty(0, dtype=np.int64)  # of the first rows of `_losses`
        self._compared = np.ones(goals, dtype=bool)

    def __len__(self) -> int:
        return len(self._losses) + len(self._violations)

    def add(self, outcome: Outcome) -> None:
        """Add an outcome."""
        if outcome.violation > 0:
            insort(self._violations, outcome.violation)
        else:
            self._losses = np.vstack([self._losses, outcome.losses])

    def remove(self, outcome: Outcome) -> None:
        """Remove an outcome that was added."""
        if outcome.violation > 0:
            del self._violations[bisect_left(self._violations, outcome.violation)]
        else:
            self._losses = np.delete(self._losses, self._place_of(outcome), axis=0)
            self._ranks = self._ranks[:0]

    def ahead(self, outcome: Outcome) -> int:
        """Return how many have a better rank."""
        if outcome.violation > 0:
            return len(self._losses) + bisect_left(self._violations, outcome.violation)
        self._rank()
        table, own = self._losses[:, self._compared], np.array(outcome.losses)[self._compared]
        if len(own) < 2:
            return int((table < own).any(axis=1).sum())
        return int((self._ranks < self._rank_of(own)).sum())

    def better(self, outcome: Outcome) -> int:
        """Return how many are better than one that was added: those ahead, and the more isolated of the same rank.

        Of the first front none is better than another: each of them may be what is looked for.
        """
        ahead = self.ahead(outcome)
        if ahead == 0 or outcome.violation > 0 or self._compared.sum() < 2:
            return ahead
        own = self._place_of(outcome)
        front = np.flatnonzero(self._ranks == self._ranks[own])
        distances = np.array(crowding_distances(self._losses[front][:, self._compared].tolist()))
        return ahead + int((distances > distances[front == own]).sum())

    def _place_of(self, outcome: Outcome) -> int:
        rows, own = self._losses, np.array(outcome.losses)
        return int(np.flatnonzero(((rows == own) | (np.isnan(rows) & np.isnan(own))).all(axis=1))[0])

    def _rank(self) -> None:
        """Rank the outcomes that were added since the last call."""
        compared = ~np.isnan(self._losses).any(axis=0)
        if (compared != self._compared).any():
            self._compared, self._ranks = compared, self._ranks[:0]
        if compared.sum() < 2:
            return
        for row in range(len(self._ranks), len(self._losses)):
            self._ranks = np.append(self._ranks, self._rank_of(self._losses[row, compared]))
            self._push_down(row)

    def _rank_of(self, own: NDArray[np.float64]) -> int:
        """Return the rank: one more than the highest of those that dominate it, or 0."""
        others = self._losses[: len(self._ranks), self._compared]
        dominate = (others <= own).all(axis=1) & (others < own).any(axis=1)
        return int(self._ranks[dominate].max(initial=-1)) + 1

    def _push_down(self, row: int) -> None:
        """Move what the new row dominates to the next front, what those dominate to the one after it, and so on."""
        table, moved, rank = self._losses[:, self._compared], np.array([row]), int(self._ranks[row])
        while len(moved):
            front = np.flatnonzero(self._ranks == rank)
            above, below = table[moved][:, None], table[front][None]
            beaten = ((above <= below).all(axis=2) & (above < below).any(axis=2)).any(axis=0)
            moved, rank = front[beaten], rank + 1
            self._ranks[moved] = rank


class _Curve:
    """The best values of a running trial in each objective, and its running averages after each result."""

    def __init__(self, goals: int) -> None:
        self.best = Outcome((math.nan,) * goals, math.inf)
        self.averages: list[Outcome] = []
        self._totals, self._counts = np.zeros(goals), np.zeros(goals)
        self._violation = 0.0

    def append(self, outcome: Outcome) -> None:
        """Add the outcome of a result."""
        losses = np.array(outcome.losses)
        known = ~np.isnan(losses)
        self._totals[known] += losses[known]
        self._counts += known
        self._violation += outcome.violation
        best = tuple(np.fmin(self.best.losses, losses).tolist())
        self.best = Outcome(best, min(self.best.violation, outcome.violation))
        means = np.where(self._counts > 0, self._totals / np.maximum(self._counts, 1), np.nan)
        self.averages.append(Outcome(tuple(means.tolist()), self._violation / (len(self.averages) + 1)))


class MedianRanks:
    """The median rank of the averages, for several objectives or limits."""

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self._reader = OutcomeReader(objectives)
        self._goals = len(self._reader.goals)

    def curve(self) -> _Curve:
        """Return the curve of a trial without results."""
        return _Curve(self._goals)

    def results(self) -> Standing:
        """Return the averages of no trial."""
        return Standing(self._goals)

    def read(self, value: Any) -> Outcome:
        """Return the outcome in a report."""
        self._reader.check(value)
        return self._reader.read([value], 0)

    def better(self, averages: Standing, best: Outcome) -> int:
        """Return how many averages have a better rank than the best values of a trial."""
        return averages.ahead(best)

    def explained(self, averages: Standing, best: Outcome) -> str:
        """Return why a trial is worse than the median."""
        ahead, count = averages.ahead(best), counted(len(averages), "trial")
        return f"{self._reader.shown(best)} ranked behind {ahead} of {count}"
