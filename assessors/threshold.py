"""The simplest rule: a trial whose result is outside stated bounds is stopped."""

from __future__ import annotations

import math
from typing import Any

from ..plugins import integer, loss_sign, number
from ..protocol import counted, metric_value, rounded
from .base import Assessor, AssessResult


class ThresholdAssessor(Assessor):
    """Stops a trial whose latest result is below `lower`, above `upper`, or NaN.

    From `start_step` results on each result is looked at; of `lower` and `upper` at least one is needed.
    `optimize_mode` is accepted so that all assessors have it, and changes nothing. Raises ValueError for other
    arguments.

    >>> rule = ThresholdAssessor(upper=10.0, start_step=2)
    >>> rule.assess_trial("t", [50.0]), rule.assess_trial("t", [50.0, 20.0])
    (<AssessResult.Good: True>, <AssessResult.Bad: False>)
    >>> rule.reason
    '20 is above 10 after 2 results'
    """

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        start_step: int = 0,
        optimize_mode: str = "maximize",
    ) -> None:
        loss_sign(optimize_mode)
        if lower is None and upper is None:
            raise ValueError("lower or upper must be given, or both")
        self._lower = -math.inf if lower is None else number("lower", lower)
        self._upper = math.inf if upper is None else number("upper", upper)
        if self._lower > self._upper:
            raise ValueError(f"lower must not be above upper, {lower!r} above {upper!r}")
        self._start_step = integer("start_step", start_step, 0)
        self.reason: str | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the latest result is outside the bounds, else Good."""
        self.reason = None
        count = len(trial_history)
        if count == 0:
            return AssessResult.Good
        value = metric_value(trial_history[-1])
        if count < self._start_step or self._lower <= value <= self._upper:
            return AssessResult.Good
        self.reason = f"{self._fault(value)} after {counted(count, 'result')}"
        return AssessResult.Bad

    def _fault(self, value: float) -> str:
        if value < self._lower:
            return f"{rounded(value)} is below {rounded(self._lower)}"
        if value > self._upper:
            return f"{rounded(value)} is above {rounded(self._upper)}"
        bounds = [rounded(bound) for bound in (self._lower, self._upper) if not math.isinf(bound)]
        return f"NaN is not within {' and '.join(bounds)}"
