"""The statuses of an experiment and the table of its legal moves."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["EXPERIMENT_MOVES", "ExperimentStatus"]


class ExperimentStatus(StrEnum):
    """Where an experiment stands (NNI's names)."""

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
        """Does nothing run for it any more?"""
        return self in _FINAL


_S = ExperimentStatus
_FINAL = (_S.STOPPED, _S.DONE, _S.ERROR, _S.VIEWED)
_ENDS = {_S.STOPPING, _S.DONE, _S.ERROR}

# Who may follow whom. DONE, STOPPED and ERROR can be taken up again (resume), VIEWED cannot.
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
