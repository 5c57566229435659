"""The statuses of an experiment and the table of its legal moves."""

from __future__ import annotations

from enum import StrEnum


class ExperimentStatus(StrEnum):
    """The state of an experiment (NNI's names)."""

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
