"""A callback for the `fit` of CatBoost's models."""

from __future__ import annotations

from typing import Any

from ..sdk import TrialStopped
from .reporting import TrialReports, latest_metrics
from .requirements import required

required("catboost", "1.0")

__all__ = ["PitchpipeCallback"]


class PitchpipeCallback:
    """Reports the metrics of each iteration; does nothing outside of a trial.

    `monitor` names the data set and the metric, as in `validation-Logloss`; the default is the first metric of the last
    data set. The training ends when the trial's budget of iterations is spent. CatBoost does not notify callbacks of
    its end, so the script reports the final result, which `model.best_score_` contains.
    """

    def __init__(self, monitor: str | None = None) -> None:
        self._monitor = monitor

    def after_iteration(self, info: Any) -> bool:
        """Report an iteration; return whether the training continues."""
        metrics = latest_metrics(info.metrics)
        last = next(reversed(info.metrics), "")
        default = next((name for name in metrics if name.startswith(f"{last}-")), "")
        reports = TrialReports(self._monitor or default)
        try:
            reports.report(metrics)
        except TrialStopped:  # CatBoost would hide it in an error of its own; the next report raises it again
            return False
        reports.check()
        return not reports.is_spent(info.iteration)
