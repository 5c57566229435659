"""Curve fitting: a trial is stopped if its learning curve is not expected to come near the best trial so far.

Domhan, Springenberg and Hutter, IJCAI 2015, with NNI's arguments and its test against a share of the best result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..plugins import integer, loss_sign, number
from .base import Assessor, AssessResult
from .gains import counted, gain_of
from .learning_curve import extrapolate


class CurvefittingAssessor(Assessor):
    """Predicts each trial's result at `epoch_num` and stops it if that is below `threshold` of the best.

    Trials are judged after `start_step` results and then every `gap` results, once a trial has succeeded; the best
    is the best last intermediate result of those. With `threshold` 0.95 and a best of 0.9, trials predicted below
    0.855 are stopped; when minimising, those above the best by the same share of its size. Raises ValueError for other
    arguments. NaN is left out of a curve; a trial that reports only NaN is stopped.

    >>> rule = CurvefittingAssessor(epoch_num=10, start_step=4)
    >>> good, bad = [[level * (1 - 0.5**n) for n in range(1, 11)] for level in (0.9, 0.3)]
    >>> rule.assess_trial("good", good)
    <AssessResult.Good: True>
    >>> rule.trial_end("good", success=True)
    >>> rule.assess_trial("bad", bad[:4])
    <AssessResult.Bad: False>
    >>> rule.reason
    'predicted 0.303 +- 0.003 after 10 results, below 0.854165 (0.95 of the best, 0.899121), from 4 results'
    """

    def __init__(
        self,
        epoch_num: int = 20,
        start_step: int = 6,
        threshold: float = 0.95,
        gap: int = 1,
        optimize_mode: str = "maximize",
    ) -> None:
        self._epoch_num = integer("epoch_num", epoch_num, 1)
        self._start_step = integer("start_step", start_step, 1)
        self._threshold = number("threshold", threshold, 0, 1)
        self._gap = integer("gap", gap, 1)
        self._sign = -loss_sign(optimize_mode)
        self._last: dict[str, float] = {}  # the last result of each running trial
        self._judged: dict[str, int] = {}  # how many results it had when it was judged last
        self._best = -math.inf
        self.reason: str | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the curve is not expected to come near the best, else Good."""
        self.reason = None
        count = len(trial_history)
        if count == 0:
            return AssessResult.Good
        self._last[trial_job_id] = gain_of(trial_history[-1], self._sign)
        if self._best == -math.inf or count >= self._epoch_num or not self._is_due(trial_job_id, count):
            return AssessResult.Good
        gains = np.array([gain_of(value, self._sign) for value in trial_history])
        self.reason = self._objection(gains)
        return AssessResult(self.reason is None)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Compare others with this trial, if it succeeded and none was better."""
        last = self._last.pop(trial_job_id, -math.inf)
        self._judged.pop(trial_job_id, None)
        if success and self._best < last < math.inf:
            self._best = last

    def _is_due(self, trial: str, count: int) -> bool:
        """Return whether to judge a trial now, and note it; the same count again gives the same verdict."""
        before = self._judged.get(trial, 0)
        if count < self._start_step or 0 < before < count < before + self._gap:
            return False
        self._judged[trial] = count
        return True

    def _objection(self, gains: np.ndarray[Any, np.dtype[np.float64]]) -> str | None:
        """Return why a curve is not good enough, or None."""
        best, sign, count = self._best, self._sign, len(gains)
        bound = best - (1 - self._threshold) * abs(best)
        shown_bound = f"{sign * bound:.6g} ({self._threshold:g} of the best, {sign * best:.6g})"
        if bool((gains == -math.inf).all()):
            return f"no number in {counted(count, 'result')}, while {shown_bound} is asked for"
        prediction = extrapolate(gains, self._epoch_num)
        if prediction is None or prediction.mean >= bound:
            return None
        side = "below" if sign > 0 else "above"
        return (
            f"predicted {sign * prediction.mean:.3f} +- {prediction.deviation:.3f}"
            f" after {counted(self._epoch_num, 'result')}, {side} {shown_bound}, from {counted(count, 'result')}"
        )
