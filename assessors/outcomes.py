"""Reports with several objectives or with limits, and how they compare: feasible first, then by non-dominated rank.

Schmucker et al., Multi-objective Asynchronous Successive Halving, arXiv 2106.12639, 2021
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..numerics import Fronts, crowding_distances
from ..protocol import MetricError, Objective, counted, main_objective, metric_value, rounded

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

    An objective that is missing or None in a report has its latest earlier value.

    >>> reader = OutcomeReader([Objective(), Objective(name="ms", direction=None, at_most=20.0)])
    >>> reader.read([{"default": 0.5, "ms": 25.0}, 0.4], 1)
    Outcome(losses=(0.4,), violation=0.25)
    """

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self._objectives = tuple(objectives)
        self._main = main_objective(objectives).name
        self.goals = tuple(metric for metric in objectives if metric.direction is not None)

    def check(self, report: Any) -> None:
        """Raise `MetricError` for a report without any objective, or with one that is not a number."""
        values = [self._number(report, metric.name) for metric in self._objectives]
        if all(value is None for value in values):
            names = ", ".join(repr(metric.name) for metric in self._objectives)
            raise MetricError(f"reported a dict with none of the objectives {names}")

    def read(self, history: Sequence[Any], place: int) -> Outcome:
        """Return the outcome of a trial at a place of its history."""
        values = [(metric, self._latest(history, place, metric.name)) for metric in self._objectives]
        losses = tuple(_loss(metric, value) for metric, value in values if metric.direction is not None)
        known = [(metric, value) for metric, value in values if value is not None]
        finite = all(math.isfinite(value) for _, value in known)
        violation = sum(metric.violation(value) for metric, value in known) if finite else math.inf
        return Outcome(losses, violation)

    def shown(self, outcome: Outcome) -> str:
        """Return an outcome in words.

        >>> reader = OutcomeReader([Objective(direction="maximize"), Objective(name="ms", at_most=20.0)])
        >>> reader.shown(Outcome((-0.9, 30.0), 0.5))
        'default 0.9, ms 30 (a limit is broken)'
        """
        if outcome.violation == math.inf:
            return "no finite number"
        pairs = zip(self.goals, outcome.losses, strict=True)
        text = ", ".join(
            f"{goal.name} {rounded(goal.sign * loss + 0.0)}" for goal, loss in pairs if loss == loss
        )
        return text + " (a limit is broken)" * (outcome.violation > 0)

    def _latest(self, history: Sequence[Any], place: int, name: str) -> float | None:
        values = (self._number(history[i], name) for i in range(place, -1, -1))
        return next((value for value in values if value is not None), None)

    def _number(self, report: Any, name: str) -> float | None:
        if isinstance(report, Mapping):
            return None if report.get(name) is None else metric_value(report, name)
        return metric_value(report, name) if name == self._main else None


def _loss(metric: Objective, value: float | None) -> float:
    if value is None:
        return math.nan
    return min(max(metric.sign * value, -_LARGEST), _LARGEST) if math.isfinite(value) else _LARGEST


class Standing:
    """The outcomes of trials after the same number of results, and how many of them are better than another.

    Feasible outcomes are ranked by non-dominated fronts; infeasible ones follow, in order of their violation. An
    objective is left out if one of the feasible outcomes has no value for it.

    >>> standing = Standing(2)
    >>> for losses in [(0.0, 2.0), (1.0, 1.0), (2.0, 0.0), (3.0, 3.0)]:
    ...     standing.add(Outcome(losses))
    >>> standing.ahead(Outcome((1.0, 3.0))), standing.better(Outcome((1.0, 1.0)))
    (3, 0)
    """

    def __init__(self, goals: int) -> None:
        self._feasible: list[tuple[float, ...]] = []  # their losses
        self._violations: list[float] = []  # of the others, ascending
        self._unknown = [0] * goals  # how many of the feasible lack each objective
        self._compared = self._known()
        self._fronts = Fronts()

    def __len__(self) -> int:
        return len(self._feasible) + len(self._violations)

    def add(self, outcome: Outcome) -> None:
        """Add an outcome."""
        if outcome.violation > 0:
            insort(self._violations, outcome.violation)
            return
        self._feasible.append(outcome.losses)
        if not self._has_changed(outcome, 1):
            self._fronts.add(self._part(outcome.losses))

    def remove(self, outcome: Outcome) -> None:
        """Remove an outcome that was added."""
        if outcome.violation > 0:
            del self._violations[bisect_left(self._violations, outcome.violation)]
            return
        self._feasible.remove(outcome.losses)
        if not self._has_changed(outcome, -1):
            self._fronts.remove(self._part(outcome.losses))

    def ahead(self, outcome: Outcome) -> int:
        """Return how many have a better rank."""
        if outcome.violation > 0:
            return len(self._feasible) + bisect_left(self._violations, outcome.violation)
        rank = self._fronts.rank(self._part(outcome.losses))
        return sum(map(len, self._fronts.ranked[:rank]))

    def better(self, outcome: Outcome) -> int:
        """Return how many are better than one that was added: those ahead, and the more isolated of the same rank.

        Of the first front none is better than another: each of them may be what is looked for.
        """
        ahead = self.ahead(outcome)
        if ahead == 0 or outcome.violation > 0 or len(self._compared) < 2:
            return ahead
        own = self._part(outcome.losses)
        front = self._fronts.ranked[self._fronts.rank(own)]
        distances = crowding_distances(front)
        return ahead + sum(distance > distances[front.index(own)] for distance in distances)

    def _known(self) -> list[int]:
        return [place for place, count in enumerate(self._unknown) if count == 0]

    def _part(self, losses: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(losses[place] for place in self._compared)

    def _has_changed(self, outcome: Outcome, count: int) -> bool:
        """Count the missing values of an outcome; if this changes which objectives are compared, rank all again."""
        for place, loss in enumerate(outcome.losses):
            self._unknown[place] += count * math.isnan(loss)
        if (known := self._known()) == self._compared:
            return False
        self._compared = known
        self._fronts = Fronts(map(self._part, self._feasible))
        return True


class OutcomeCurve:
    """The best values of a running trial in each objective, and its running averages after each result."""

    def __init__(self, goals: int) -> None:
        self.best = Outcome((math.nan,) * goals, math.inf)
        self.averages: list[Outcome] = []
        self._totals, self._counts = [0.0] * goals, [0] * goals
        self._violation = 0.0

    def append(self, outcome: Outcome) -> None:
        """Add the outcome of a result."""
        for place, loss in enumerate(outcome.losses):
            if not math.isnan(loss):
                self._totals[place] += loss
                self._counts[place] += 1
        self._violation += outcome.violation
        # A comparison with NaN, which is not known, is false.
        pairs = zip(self.best.losses, outcome.losses, strict=True)
        best = tuple(old if old <= new or math.isnan(new) else new for old, new in pairs)
        self.best = Outcome(best, min(self.best.violation, outcome.violation))
        sums = zip(self._totals, self._counts, strict=True)
        means = tuple(total / count if count else math.nan for total, count in sums)
        self.averages.append(Outcome(means, self._violation / (len(self.averages) + 1)))


class MedianRanks:
    """The median rank of the averages, for several objectives or limits."""

    better = staticmethod(Standing.ahead)

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self._reader = OutcomeReader(objectives)
        self._goals = len(self._reader.goals)

    def curve(self) -> OutcomeCurve:
        """Return the curve of a trial without results."""
        return OutcomeCurve(self._goals)

    def results(self) -> Standing:
        """Return the averages of no trial."""
        return Standing(self._goals)

    def read(self, value: Any) -> Outcome:
        """Return the outcome in a report."""
        self._reader.check(value)
        return self._reader.read([value], 0)

    def explained(self, averages: Standing, best: Outcome) -> str:
        """Return why a trial is worse than the median."""
        ahead, count = averages.ahead(best), counted(len(averages), "trial")
        return f"{self._reader.shown(best)} is ranked behind {ahead} of {count}"
