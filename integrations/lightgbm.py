"""A callback for LightGBM, for `lightgbm.train`, `lightgbm.cv` and the estimators."""

from __future__ import annotations

from typing import Any

from .reporting import TrialReports
from .requirements import required

lightgbm = required("lightgbm", "4.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback:
    """Reports the metrics of each round.

    `monitor` is the name of the data and that of the metric, `valid_0-binary_logloss`; without it the first metric
    counts that is not of the training data. The training ends when the trial's budget of rounds is spent. LightGBM does
    not tell callbacks when it has finished, so the script reports the final result: `model.best_score` has it. Nothing
    happens outside of a trial.
    """

    order = 20  # before early stopping, which ends a round
    before_iteration = False

    def __init__(self, monitor: str | None = None) -> None:
        self._monitor = monitor

    def __call__(self, env: Any) -> None:
        """Report a round; raise LightGBM's `EarlyStopException` after the last one of the budget."""
        results = env.evaluation_result_list or []
        metrics = {f"{data}-{name}": value for data, name, value, *_ in results}
        validated = [name for name in metrics if not name.startswith("training-")]
        reports = TrialReports(self._monitor or next(iter([*validated, *metrics]), ""))
        reports.report(metrics)
        reports.check()
        if reports.is_spent(env.iteration + 1):
            raise lightgbm.callback.EarlyStopException(env.iteration, results)
