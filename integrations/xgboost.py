"""A callback for XGBoost, for `xgboost.train`, `xgboost.cv` and the estimators."""

from __future__ import annotations

from typing import Any

from .reporting import MetricLog, TrialReports, latest_metrics
from .requirements import required

xgboost = required("xgboost", "2.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback(xgboost.callback.TrainingCallback):
    """Reports the metrics of each round, and at the end those of the final round; does nothing outside of a trial.

    The final round is the best one, if early stopping knows it, else the last. `monitor` is a name as XGBoost prints
    it, such as `validation-logloss`; the default is the last metric, as in early stopping. The training ends when the
    trial's budget of rounds is spent. With `final=False` the script reports the final result itself.
    """

    def __init__(self, monitor: str | None = None, *, final: bool = True) -> None:
        super().__init__()
        self._monitor, self._final = monitor, final
        self._rounds: list[dict[str, float]] = []

    def before_training(self, model: Any) -> Any:
        """Start over: an estimator may be fitted several times with the same callback."""
        self._rounds = []
        self._reports = TrialReports(self._monitor or "", final=self._final)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: MetricLog) -> bool:
        """Report a round; return whether it was the last of the budget."""
        metrics = latest_metrics(evals_log)
        self._reports.monitor = self._monitor or next(reversed(metrics), "")
        self._rounds.append(metrics)
        self._reports.report(metrics)
        self._reports.check()
        return self._reports.is_spent(epoch + 1)

    def after_training(self, model: Any) -> Any:
        """Report the final result."""
        best = model.attr("best_iteration")
        self._reports.finish(self._rounds[-1 if best is None else int(best)])
        return model
