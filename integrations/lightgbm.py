"""A callback for LightGBM, for `lightgbm.train`, `lightgbm.cv` and the estimators."""

from __future__ import annotations

from typing import Any

from .reporting import TrialReports
from .requirements import required

lightgbm = required("lightgbm", "4.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback:
    """Reports the metrics of each round; does nothing outside of a trial.

    `monitor` names the data set and the metric, as in `valid_0-binary_logloss`; the default is the first metric that is
    not measured on the training data. The training ends when the trial's budget of rounds is spent. LightGBM does not
    notify callbacks of its end, so the script reports the final result, which `model.best_score` contains.
    """

    order = 20  # before the callback of early stopping, which ends a round
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
