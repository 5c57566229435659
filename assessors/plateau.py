"""A trial that has stopped improving is stopped.

Prechelt, Early Stopping - But When?, in Neural Networks: Tricks of the Trade, 1998 (the class UP of criteria, with a
least improvement).
"""

from __future__ import annotations

from typing import Any

from ..plugins import integer, loss_sign, number
from .base import Assessor, AssessResult
from .gains import counted, gain_of
from .progress import Progress


class PlateauAssessor(Assessor):
    """Stops a trial whose best result has not been improved on by more than `min_delta` for `patience` results.

    It is judged from `start_step` results on, by itself alone: other trials do not matter. NaN is the worst value.
    `optimize_mode` is `maximize` or `minimize`. Raises ValueError for other arguments.

    >>> rule = PlateauAssessor(optimize_mode="minimize", patience=2)
    >>> rule.assess_trial("t", [0.9, 0.5, 0.6]), rule.assess_trial("t", [0.9, 0.5, 0.6, 0.5])
    (<AssessResult.Good: True>, <AssessResult.Bad: False>)
    >>> rule.reason
    'no better than 0.5 for the last 2 of 4 results'
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        patience: int = 10,
        min_delta: float = 0.0,
        start_step: int = 0,
    ) -> None:
        self._sign = -loss_sign(optimize_mode)
        self._patience = integer("patience", patience, 1)
        self._progress = Progress(number("min_delta", min_delta, 0.0))
        self._start_step = integer("start_step", start_step, 0)
        self.reason: str | None = None

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> AssessResult:
        """Return Bad when the last `patience` results brought nothing, else Good."""
        self.reason = None
        count = len(trial_history)
        state = self._progress.follow(trial_job_id, count, lambda i: gain_of(trial_history[i], self._sign))
        still = count - state.since
        if count < self._start_step or still < self._patience:
            return AssessResult.Good
        best = "NaN" if state.best == float("-inf") else f"{self._sign * state.best + 0.0:.6g}"
        self.reason = f"no better than {best} for the last {still} of {counted(count, 'result')}"
        return AssessResult.Bad

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Forget the trial."""
        self._progress.forget(trial_job_id)
