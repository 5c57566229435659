"""How long the experiment and its trials have run, and when their time is over. The caller passes the time."""

from __future__ import annotations

from .trial import Trial


class Deadlines:
    """The time of an experiment over all its managers, and of its trials. In seconds; None is no bound."""

    def __init__(self) -> None:
        self._run_time = 0.0  # of earlier managers
        self._running_since: float | None = None
        self._timed: dict[str, Trial] = {}  # running trials, the earliest started first

    def restore(self, run_time: float) -> None:
        """Add the time for which earlier managers ran the experiment."""
        self._run_time = run_time

    def begin(self, now: float) -> None:
        """Start the clock of the experiment."""
        self._running_since = now

    def elapsed(self, now: float) -> float:
        """Return for how long the experiment has run."""
        return self._run_time + (now - self._running_since if self._running_since is not None else 0.0)

    def watch(self, trial: Trial) -> None:
        """Start the clock of a trial, unless it is stopping."""
        if trial.start_time is not None and trial.verdict is None:
            self._timed[trial.trial_id] = trial

    def forget(self, trial: Trial) -> None:
        """Stop the clock of a trial."""
        self._timed.pop(trial.trial_id, None)

    def of_experiment(self, longest: float | None) -> float | None:
        """Return when an experiment that may run for `longest` is over its time; None: never."""
        if longest is None or self._running_since is None:
            return None
        return self._running_since + longest - self._run_time

    def next(self, longest: float | None, longest_trial: float | None) -> float | None:
        """Return the earliest deadline; None if there is none."""
        if longest is None and longest_trial is None:
            return None  # as usual, and this is asked in each turn
        first = next(iter(self._timed.values()), None)
        dues = (None if first is None else _due(first, longest_trial), self.of_experiment(longest))
        return min((due for due in dues if due is not None), default=None)

    def overdue(self, longest_trial: float | None, now: float) -> list[Trial]:
        """Return the trials that have run longer than they may."""
        timed = self._timed.values()
        return [trial for trial in timed if (due := _due(trial, longest_trial)) is not None and now >= due]


def _due(trial: Trial, longest: float | None) -> float | None:
    return None if longest is None or trial.start_time is None else trial.start_time + longest
