"""Curve fitting: a trial is stopped if its learning curve is not expected to come near the best trial so far.

Domhan, Springenberg and Hutter, Speeding Up Automatic Hyperparameter Optimization of Deep Neural Networks by
Extrapolation of Learning Curves, IJCAI 2015, with NNI's arguments and its test against a share of the best result.

Their families of curves are kept, their Monte Carlo chain is not: every family here is y = a + b phi(x) with a shape
phi from a grid, so that a and b have closed forms, the average over shapes is a sum, and the cost is bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import Floats
from ..plugins import integer, loss_sign, number
from ..protocol import counted, rounded
from .base import Assessor, AssessResult, gain_of

_MOST_POINTS = 64  # of a curve are fitted; a longer one is thinned out evenly
_FLOOR = 3e-4  # noise that is assumed, as a share of the range of the curve
_LARGEST = 1e150  # larger values are left out: squares must stay finite


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

    def _objection(self, gains: Floats) -> str | None:
        """Return why a curve is not good enough, or None."""
        best, sign, count = self._best, self._sign, len(gains)
        bound = best - (1 - self._threshold) * abs(best)
        shown_bound = f"{rounded(sign * bound)} ({self._threshold:g} of the best, {rounded(sign * best)})"
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


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected final value of a curve: mean and standard deviation over families and shapes."""

    mean: float
    deviation: float


def _shapes(x: Floats, horizon: float) -> list[Floats]:
    """Return the shapes of each family at x, shape (k, n) each; all fall, to 0 but for the logarithm.

    The names are those of Domhan et al., table 1. Where a family has one shape parameter its grid is fine.
    """
    powers, times = np.geomspace(0.1, 4.0, 48)[:, None], horizon * np.geomspace(0.02, 1.5, 64)[:, None]
    ratios = x / times[::2]
    return [
        x**-powers,  # pow3
        (x + 0.1 * horizon) ** -powers[::2],  # pow4
        np.exp(-x / times),  # exp3
        np.concatenate([np.exp(-(ratios**delta)) for delta in (0.5, 0.65, 0.8, 1.25, 1.6)]),  # weibull
        np.concatenate([1.0 / (1.0 + ratios**eta) for eta in (1.0, 1.5, 2.0, 3.0)]),  # hill3
        1.0 / np.log(x + 1.0)[None],  # ilog2
        -np.log(x)[None],  # log power: has no limit
    ]


def extrapolate(values: Floats, horizon: int) -> Prediction | None:
    """Predict the value at `horizon` from `values` at 1, 2, ..., shape (n,), which rise; None with too few numbers.

    Each shape is fitted by least squares; one that would fall is replaced by a constant. Shapes are weighted by their
    likelihood under normal noise of unknown size, with equal priors for all families (Domhan et al., section 3.3).

    >>> x = np.arange(1.0, 9.0)
    >>> round(extrapolate(0.9 - 0.5 * x**-1.0, 100).mean, 2)
    0.9
    """
    steps = np.arange(1.0, len(values) + 1)
    usable = np.isfinite(values) & (np.abs(values) < _LARGEST)
    x, y = steps[usable], values[usable]
    if len(x) < 3:
        return None
    if len(x) > _MOST_POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _MOST_POINTS).astype(np.int64))
        x, y = x[kept], y[kept]
    scale = float(np.ptp(y))
    if scale == 0.0:
        return Prediction(float(y[-1]), 0.0)
    families = _shapes(np.append(x, float(horizon)), float(horizon))
    log_prior = np.concatenate([np.full(len(family), -math.log(len(family))) for family in families])
    mean, variance, log_likelihood = _fitted(np.concatenate(families), (y - y[-1]) / scale)
    weights = np.exp(log_prior + log_likelihood - (log_prior + log_likelihood).max())
    weights /= weights.sum()
    average = float(weights @ mean)
    spread = float(weights @ (variance + (mean - average) ** 2))
    return Prediction(average * scale + float(y[-1]), math.sqrt(spread) * scale)


def _fitted(shapes: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit every shape, (m, n + 1), to y, (n,): mean and variance at the last column, and the log likelihood."""
    n = len(y)
    seen, target = shapes[:, :-1], shapes[:, -1]
    centre = seen.mean(axis=1, keepdims=True)
    centred = seen - centre
    square = np.maximum((centred**2).sum(axis=1), 1e-300)
    slope = np.minimum(centred @ (y - y.mean()) / square, 0.0)  # shapes fall and curves rise
    residual = np.maximum(((y - y.mean()) ** 2).sum() - slope**2 * square, 0.0)
    far = target - centre[:, 0]
    noise = residual / max(n - 2, 1) + _FLOOR**2
    mean = y.mean() + slope * far
    variance = noise * (1.0 / n + far**2 / square * (slope < 0))
    return mean, variance, -0.5 * n * np.log(residual / n + _FLOOR**2)
