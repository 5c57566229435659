"""The time of an experiment: how long it and its trials have run, how fast trials end, and when all is over.

The caller passes the time, in seconds.
"""

from __future__ import annotations

from collections import deque

from .trial import Trial


class Deadlines:
    """The time of an experiment over all its managers, and of its trials; None is no bound."""

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
        """Return when an experiment that may run for `longest` must end; None: never."""
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


# The throughput is that of the last minute.
_WINDOW = 60.0


class RateMeter:
    """Measures trials per second."""

    def __init__(self) -> None:
        self._ends: deque[tuple[float, int]] = deque()

    def note(self, now: float, finished: int) -> None:
        """Note how many trials have ended."""
        ends = self._ends
        if not ends or finished != ends[-1][1]:
            ends.append((now, finished))
        while len(ends) > 2 and ends[1][0] < now - _WINDOW:
            ends.popleft()

    def rate(self, now: float) -> float | None:
        """Return the trials per second; None until two have ended at different times."""
        if not self._ends:
            return None
        (first_time, first), (last_time, last) = self._ends[0], self._ends[-1]
        if last == first or now <= first_time:
            return None
        # Until now only if the next end is overdue: otherwise the rate would sag between two ends.
        mean = (last_time - first_time) / (last - first)
        return (last - first) / max(last_time - first_time, now - first_time - mean, 1e-9)


def forecast(
    *, total: int | None, finished: int, rate: float | None, elapsed: float, longest: float | None
) -> tuple[float | None, bool]:
    """Return the seconds left, if known, and whether they are only the bound of `longest` seconds in all.

    >>> forecast(total=10, finished=4, rate=2.0, elapsed=5.0, longest=60.0)
    (3.0, False)
    >>> forecast(total=None, finished=4, rate=2.0, elapsed=5.0, longest=60.0)
    (55.0, True)
    """
    left = [max(0, total - finished) / rate] if total is not None and rate else []
    is_bound = not left and longest is not None
    if longest is not None:
        left.append(max(0.0, longest - elapsed))
    return min(left, default=None), is_bound
