"""What callbacks share: how the metrics of a training become the results of a trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import SupportsFloat, TypeAlias

from ..sdk import get_budget, get_trial_id, report_final_result, report_intermediate_result

Metrics: TypeAlias = Mapping[str, SupportsFloat]
MetricLog: TypeAlias = Mapping[str, Mapping[str, Sequence[float | tuple[float, float]]]]
"""The values of metrics so far, by data set and name; those of a cross-validation are means with their deviations."""


class TrialReports:
    """The results of one training; nothing is reported outside of a trial.

    A result is a dict of all metrics, with the metric called `monitor` also as `default`.

    >>> reports = TrialReports("loss")
    >>> reports.report({"loss": 0.5})
    >>> reports.is_spent(steps=100)
    False
    """

    def __init__(self, monitor: str, *, final: bool = True) -> None:
        self.monitor = monitor
        self._final = final
        self._last: dict[str, float] | None = None
        self._names: list[str] = []

    def report(self, metrics: Metrics) -> None:
        """Report an intermediate result, unless this step has not measured the monitored metric."""
        self._names = list(metrics)
        if is_in_trial() and self.monitor in metrics:
            self._last = self._result(metrics)
            report_intermediate_result(self._last)

    def is_spent(self, steps: int) -> bool:
        """Return whether this many steps are the trial's whole budget, so that the training ends."""
        budget = get_budget()
        return budget is not None and steps >= budget

    def finish(self, metrics: Metrics | None = None) -> None:
        """Report the final result: these metrics, or the last ones; raise ValueError if there are none."""
        if not is_in_trial():
            return
        self.check()
        if self._final:
            report_final_result(self._last if metrics is None else self._result(metrics))

    def check(self) -> None:
        """Raise ValueError if the monitored metric was not among the metrics so far."""
        if is_in_trial() and self._last is None:
            known = ", ".join(self._names) or "none"
            raise ValueError(f"monitor: no metric is called {self.monitor!r}; the metrics are: {known}")

    def _result(self, metrics: Metrics) -> dict[str, float]:
        numbers = {name: float(value) for name, value in metrics.items()}
        return {"default": numbers[self.monitor], **numbers}


def latest_metrics(log: MetricLog) -> dict[str, float]:
    """Return the last value of each metric; of a mean with its deviation the mean.

    >>> latest_metrics({"train": {"loss": [0.5, 0.25]}, "test": {"loss": [(0.5, 0.1)]}})
    {'train-loss': 0.25, 'test-loss': 0.5}
    """
    last = {f"{data}-{name}": values[-1] for data, by_name in log.items() for name, values in by_name.items()}
    return {name: value[0] if isinstance(value, tuple) else value for name, value in last.items()}


def is_in_trial() -> bool:
    """Return whether this process belongs to a trial."""
    return get_trial_id() != "STANDALONE"
