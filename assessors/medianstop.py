"""The median stopping rule: stop a trial whose best result is worse than what the median trial averaged.

Golovin et al., Google Vizier: A Service for Black-Box Optimization, KDD 2017, section 3.2.2.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plugins import integer, loss_sign
from ..protocol import Config, counted, metric_value, objectives_of, rounded
from .base import Assessor, AssessResult, Gains
from .outcomes import MedianRanks, OutcomeCurve


@dataclass(slots=True)
class _Curve:
    """One running trial: its best result, and its running average at each step, larger being better."""

    total: float = 0.0
    best: float = -math.inf
    averages: array[float] = field(default_factory=lambda: array("d"))

    def append(self, gain: float) -> None:
        """Add a result; NaN, which is not above anything, never becomes the best, and makes averages the worst."""
        self.total += gain
        self.best = gain if gain > self.best else self.best
        average = self.total / (len(self.averages) + 1)
        self.averages.append(-math.inf if math.isnan(average) else average)


class MedianstopAssessor(Assessor):
    """Stops a trial whose best result is worse than the median of the finished trials' averages.

    `optimize_mode` is `maximize` or `minimize`; a trial is judged from `start_step` results on. Only
    succeeded trials count; the average is over their results up to that step. NaN is the worst value. Raises
    ValueError for other arguments. The cost of a verdict does not depend on the number of trials.

    >>> rule = MedianstopAssessor(optimize_mode="maximize")
    >>> rule.assess_trial("good", [0.8, 0.9])
    <AssessResult.Good: True>
    >>> rule.trial_end("good", success=True)
    >>> rule.assess_trial("bad", [0.5, 0.6])
    <AssessResult.Bad: False>
    >>> rule.reason
    '0.6 is below the median 0.85 of 1 trial after 2 results'
    """

    def __init__(self, optimize_mode: str = "maximize", start_step: int = 0) -> None:
        self._rule: Any = _Medians(-loss_sign(optimize_mode))
        self._start_step = integer("start_step", start_step, 0)
        self._running: dict[str, _Curve | OutcomeCurve] = {}
        # Position s: the averages after s + 1 results of all succeeded trials that got so far.
        self._finished: list[Any] = []
        self.reason: str | None = None

    def update_objectives(self, objectives: Sequence[Config]) -> None:
        """Take the objectives of an experiment; several, or limits, are judged by non-dominated rank."""
        parsed = objectives_of(objectives)
        if len(parsed) == 1 and not parsed[0].is_limited:
            self._rule = _Medians(-parsed[0].sign, parsed[0].name)
        else:
            self._rule = MedianRanks(parsed)

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the best of `trial_history` is worse than the median at this step, else Good."""
        self.reason = None
        curve = self._extended(trial_job_id, trial_history)
        step = len(trial_history)
        if step == 0 or step < self._start_step or step > len(self._finished):
            return AssessResult.Good
        averages = self._finished[step - 1]
        # The lower of the two middle values: if in doubt, the trial continues.
        if 2 * self._rule.better(averages, curve.best) <= len(averages):
            return AssessResult.Good
        self.reason = f"{self._rule.explained(averages, curve.best)} after {counted(step, 'result')}"
        return AssessResult.Bad

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Count the trial among those that others are compared with, if it succeeded."""
        curve = self._running.pop(trial_job_id, None)
        if curve is None or not success:
            return
        for step, average in enumerate(curve.averages):
            if step == len(self._finished):
                self._finished.append(self._rule.results())
            self._finished[step].add(average)

    def _extended(self, trial_job_id: str, history: list[Any]) -> _Curve | OutcomeCurve:
        """Return the curve of a trial, with the results that it has not seen yet."""
        curve = self._running.get(trial_job_id)
        # A new attempt began, or the call was repeated.
        if curve is None or len(history) <= len(curve.averages):
            curve = self._running[trial_job_id] = self._rule.curve()
        for value in history[len(curve.averages) :]:
            curve.append(self._rule.read(value))
        return curve


class _Medians:
    """The median of the averages, for one objective; `sign` is 1 to maximize, -1 to minimize."""

    curve, results = _Curve, Gains
    better = staticmethod(Gains.better)

    def __init__(self, sign: float, name: str = "default") -> None:
        self._sign, self._name = sign, name

    def read(self, value: Any) -> float:
        """Return the gain in a report."""
        return self._sign * metric_value(value, self._name)

    def explained(self, averages: Gains, best: float) -> str:
        """Return why a trial is worse than the median."""
        median = averages.median
        shown = [rounded(self._sign * value + 0.0) for value in (best, median)]
        if shown[0] == shown[1]:
            shown = [repr(self._sign * value) for value in (best, median)]
        if math.isinf(best):
            shown[0] = "no finite number"
        side = "below" if self._sign > 0 else "above"
        return f"{shown[0]} is {side} the median {shown[1]} of {counted(len(averages), 'trial')}"
