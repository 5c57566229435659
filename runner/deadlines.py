"""How long the experiment and its trials have run, and when their time is over. Pure: it is told what time it is."""

from __future__ import annotations

import itertools

from .trial import Trial

__all__ = ["Deadlines"]


class Deadlines:
    """The time of an experiment over all its managers, and of its trials; seconds, None is no bound."""

    def __init__(self) -> None:
        self._run_time = 0.0  # of earlier managers
        self._running_since: float | None = None
        self._timed: dict[str, Trial] = {}  # those whose time runs, the earliest started first

    def restore(self, run_time: float) -> None:
        """Take up an experiment that has run so long before."""
        self._run_time = run_time

    def begin(self, now: float) -> None:
        """From now on the time of the experiment runs."""
        self._running_since = now

    def elapsed(self, now: float) -> float:
        """How long the experiment has run."""
        return self._run_time + (now - self._running_since if self._running_since is not None else 0.0)

    def watch(self, trial: Trial) -> None:
        """From now on the trial's time runs."""
        if trial.start_time is not None and trial.verdict is None:
            self._timed[trial.trial_id] = trial

    def forget(self, trial: Trial) -> None:
        """The trial's time runs no longer."""
        self._timed.pop(trial.trial_id, None)

    def of_experiment(self, longest: float | None) -> float | None:
        """When an experiment that may run so long is over its time."""
        if longest is None or self._running_since is None:
            return None
        return self._running_since + longest - self._run_time

    def next(self, longest: float | None, longest_trial: float | None) -> float | None:
        """Return the earliest deadline of all."""
        first = next(iter(self._timed.values()), None)
        dues = (None if first is None else _due(first, longest_trial), self.of_experiment(longest))
        return min((due for due in dues if due is not None), default=None)

    def overdue(self, longest_trial: float | None, now: float) -> list[Trial]:
        """The trials that have run longer than they may."""

        def is_over(trial: Trial) -> bool:
            due = _due(trial, longest_trial)
            return due is not None and now >= due

        return list(itertools.takewhile(is_over, self._timed.values()))


def _due(trial: Trial, longest: float | None) -> float | None:
    return None if longest is None or trial.start_time is None else trial.start_time + longest
