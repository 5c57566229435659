"""The state of an experiment: its status, the table of its legal moves, and its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .trial import FailureKind


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
    """The status of one experiment, its limits, and whether its dispatcher is ready; all parts of the runner share it.

    `reason` says why the experiment ended early, `error` is a traceback if one ended it.
    """

    def __init__(self, experiment_id: str, limits: Limits) -> None:
        self.experiment_id = experiment_id
        self.limits = limits
        self.status = ExperimentStatus.INITIALIZED
        self.is_ending = False  # stopping or over: no attempt starts any more
        self.reason = ""
        self.error = ""
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
