"""The state of an experiment: its status and the table of its legal moves, its limits, its time.

The caller passes the time, in seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .trial import FailureKind, Trial


class ExperimentStatus(StrEnum):
    """The status of an experiment (NNI's names)."""

    INITIALIZED = "INITIALIZED"
    RUNNING = "RUNNING"
    NO_MORE_TRIAL = "NO_MORE_TRIAL"
    TUNER_NO_MORE_TRIAL = "TUNER_NO_MORE_TRIAL"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DONE = "DONE"
    ERROR = "ERROR"
    VIEWED = "VIEWED"

    @property
    def is_final(self) -> bool:
        """Whether the experiment is over."""
        return self in _FINAL


_S = ExperimentStatus
_FINAL = (_S.STOPPED, _S.DONE, _S.ERROR, _S.VIEWED)
_ENDS = {_S.STOPPING, _S.DONE, _S.ERROR}

# Every status and those that may follow it. All final statuses but VIEWED can be resumed.
EXPERIMENT_MOVES: dict[ExperimentStatus, set[ExperimentStatus]] = {
    _S.INITIALIZED: {_S.RUNNING, _S.STOPPING, _S.ERROR},
    _S.RUNNING: {_S.NO_MORE_TRIAL, _S.TUNER_NO_MORE_TRIAL, *_ENDS},
    _S.NO_MORE_TRIAL: {_S.RUNNING, _S.TUNER_NO_MORE_TRIAL, *_ENDS},
    _S.TUNER_NO_MORE_TRIAL: {_S.RUNNING, _S.NO_MORE_TRIAL, *_ENDS},
    _S.STOPPING: {_S.STOPPED, _S.DONE, _S.ERROR},
    _S.STOPPED: {_S.RUNNING},
    _S.DONE: {_S.RUNNING},
    _S.ERROR: {_S.RUNNING},
    _S.VIEWED: set(),
}


@dataclass(frozen=True, slots=True)
class Retries:
    """How often failed attempts of a trial are retried: `in_all`, or (None) by kind of failure; -1 is without end.

    >>> Retries(by_kind={FailureKind.OOM: 1}).allow(FailureKind.OOM, {"INFRA": 2})
    True
    >>> Retries(in_all=2).allow(FailureKind.OOM, {"INFRA": 2})
    False
    >>> Retries(in_all=-1).allow(FailureKind.OOM, {"OOM": 1000})
    True
    """

    in_all: int | None = None
    by_kind: Mapping[FailureKind, int] = field(default_factory=lambda: {FailureKind.INFRA: 3})

    def allow(self, kind: FailureKind, failed: Mapping[str, int]) -> bool:
        """Return whether a failed attempt is retried; `failed` counts the earlier failures by kind."""
        if self.in_all is not None:
            return self.in_all < 0 or sum(failed.values()) < self.in_all
        most = self.by_kind.get(kind, 0)
        return most < 0 or failed.get(kind, 0) < most


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of an experiment; durations in seconds, None is no bound."""

    trial_concurrency: int = 1
    max_trial_number: int | None = None
    max_trial_duration: float | None = None
    max_experiment_duration: float | None = None
    max_identical_failures: int = 5
    retries: Retries = field(default_factory=Retries)
    fail_fast: bool = False


class ExperimentState:
    """The status and the limits of one experiment, and what its dispatcher wants; all parts of the runner share it."""

    def __init__(self, experiment_id: str, limits: Limits) -> None:
        self.experiment_id = experiment_id
        self.limits = limits
        self.status = ExperimentStatus.INITIALIZED
        self.is_ending = False  # stopping or over: no more attempts start
        self.reason = ""  # why the experiment ended early
        self.error = ""  # the traceback that ended it
        self.is_ready = False  # the dispatcher takes requests
        self.wants_periodical = True  # the dispatcher wants intermediate results
        self.any_results: tuple[str, ...] = ()  # the kinds of results that need no number
        self.unread_result = ""  # the first intermediate result that the dispatcher could not read, and why
        # Whether a trial that ended well has asked for its parameters; None while no trial has ended well.
        self.has_asked: bool | None = None
        self.tuner_learns = True  # proposals may depend on results

    @property
    def may_start(self) -> bool:
        """Whether attempts may start now."""
        return self.is_ready and not self.is_ending

    def move(self, status: ExperimentStatus) -> None:
        """Change the status; raise `RuntimeError` if the table has no such move."""
        if status is self.status:
            return
        if status not in EXPERIMENT_MOVES[self.status]:
            raise RuntimeError(f"experiment {self.experiment_id} is {self.status} and cannot become {status}")
        self.status = status
        self.is_ending = status is ExperimentStatus.STOPPING or status.is_final


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

    def end(self, now: float) -> None:
        """Stop the clock: what a manager does after the end is not time in which trials could run."""
        self._run_time, self._running_since = self.elapsed(now), None

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
