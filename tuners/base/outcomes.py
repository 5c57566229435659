"""What trials with several objectives, or with limits on outcomes, reported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...numerics import Bools, Floats, Ints, crowding_distances, nondominated_ranks
from ...protocol import Objective, metric_value

_HUGE = 1e150  # squares and products of losses stay finite
_GAP = 0.05  # between the worst feasible loss and the best infeasible one, of the spread


class _Reported(NamedTuple):
    losses: list[float]
    excesses: list[float]
    violation: float


class Outcomes:
    """The losses and the excesses over limits of trials, by row of the history.

    A loss is to be minimised; an excess above 0 violates a limit.

    >>> outcomes = Outcomes([Objective(), Objective(name="ms", direction=None, at_most=20.0)])
    >>> outcomes.note(0, {"default": 0.1, "ms": 30.0}), outcomes.note(1, {"default": 0.7, "ms": 20.0})
    (True, True)
    >>> outcomes.feasible(np.array([0, 1])).tolist()
    [False, True]
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self.objectives = tuple(objectives)
        self.goals = tuple(objective for objective in objectives if objective.direction is not None)
        self.limits = tuple(objective for objective in objectives if objective.is_limited)
        self._reported: dict[int, _Reported] = {}

    def __contains__(self, row: int) -> bool:
        return row in self._reported

    def note(self, row: int, report: Any) -> bool:
        """Record a report; return whether it has a number for everything. Raises `MetricError`."""
        losses = [goal.loss(report) for goal in self.goals]
        excesses = [limit.excess(report) for limit in self.limits]
        self._reported.pop(row, None)
        if not all(map(math.isfinite, (*losses, *excesses))):
            return False
        violation = sum(limit.violation(metric_value(report, limit.name)) for limit in self.limits)
        self._reported[row] = _Reported(
            [_bounded(loss) for loss in losses],
            [_bounded(excess) for excess in excesses],
            _bounded(violation),
        )
        return True

    @property
    def rows(self) -> Ints:
        """The rows that have reported, in the order of their reports."""
        return np.fromiter(self._reported, dtype=np.int64)

    @property
    def width(self) -> int:
        """The number of losses and excesses of a trial."""
        return len(self.goals) + len(self.limits)

    def partial(self, report: Any) -> list[float]:
        """Return the losses and the excesses in an intermediate report, NaN where it has None or nothing."""
        if not isinstance(report, dict):
            return [math.nan] * self.width
        known = {name for name, value in report.items() if value is not None}
        losses = [goal.loss(report) if goal.name in known else math.nan for goal in self.goals]
        return losses + [limit.excess(report) if limit.name in known else math.nan for limit in self.limits]

    def take(self, row: int, other: Outcomes, other_row: int) -> None:
        """Record a row as `other` has it."""
        if other_row in other:
            self._reported[row] = other._reported[other_row]

    def losses(self, rows: Ints) -> Floats:
        """Return the losses of rows, shape (k, m)."""
        losses = [self._reported[row].losses for row in rows.tolist()]
        return np.array(losses).reshape(len(rows), len(self.goals))

    def excesses(self, rows: Ints) -> Floats:
        """Return the excesses of rows, shape (k, c)."""
        excesses = [self._reported[row].excesses for row in rows.tolist()]
        return np.array(excesses).reshape(len(rows), len(self.limits))

    def tables(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return losses (k, m) and excesses (k, c) of rows; one that is not recorded has the worst of the others."""
        known = np.array([row in self for row in rows.tolist()])
        losses, excesses = self.losses(rows[known]), self.excesses(rows[known])
        tables = []
        for table in (losses, excesses):
            whole = np.tile(table.max(axis=0, initial=-np.inf), (len(rows), 1))
            whole[known] = table
            tables.append(whole)
        return tables[0], tables[1]

    def leads(self, row: int) -> bool:
        """Return whether a row is feasible and no feasible row dominates it."""
        if row not in self or self._reported[row].violation > 0:
            return False
        rows = self.rows
        others, own = self.losses(rows[self.feasible(rows)]), np.array(self._reported[row].losses)
        return not ((others <= own).all(axis=1) & (others < own).any(axis=1)).any()

    def feasible(self, rows: Ints) -> Bools:
        """Return which rows keep all limits, shape (k,)."""
        return self._violations(rows) == 0

    def ranking(self, rows: Ints | None = None) -> tuple[Ints, Floats]:
        """Return rows, all if none are given, and one loss for each, which ranks them.

        Feasible trials are ranked by their loss, those with several by non-dominated rank and, within it, by how
        isolated they are, repeats last; the infeasible ones follow, by their violation.
        """
        rows = self.rows if rows is None else rows
        losses, feasible = self.losses(rows), self.feasible(rows)
        ranked = losses[:, 0] if len(self.goals) == 1 else _ranks_with_crowding(losses, feasible)
        violation = self._violations(rows)
        if not feasible.any():
            return rows, violation
        worst = ranked[feasible].max()
        spread = max(worst - ranked[feasible].min(), 1e-9 * abs(worst), 1e-300)
        return rows, np.where(feasible, ranked, worst + spread * (_GAP + violation / (1 + violation)))

    def _violations(self, rows: Ints) -> Floats:
        return np.array([self._reported[row].violation for row in rows.tolist()])


def _bounded(value: float) -> float:
    return min(max(value, -_HUGE), _HUGE)


def _ranks_with_crowding(losses: Floats, feasible: Bools) -> Floats:
    ranks = np.zeros(len(losses))
    ranks[feasible] = nondominated_ranks(losses[feasible])
    for rank in np.unique(ranks[feasible]):
        chosen = np.flatnonzero(feasible & (ranks == rank))
        distances = np.array(crowding_distances(losses[chosen].tolist()))
        is_repeat = np.ones(len(chosen))  # of a point that is ranked already: it adds nothing to the front
        is_repeat[np.unique(losses[chosen], axis=0, return_index=True)[1]] = 0.0
        order = np.argsort(np.lexsort((-distances, is_repeat)), kind="stable")
        ranks[chosen] += order / (len(chosen) + 1)
    return ranks
