"""Ray Tune's words for what is the same here: the statuses of a trial, and what can be decided about one."""

from __future__ import annotations

from enum import StrEnum

from .trial import TrialStatus

__all__ = ["TUNE_STATUS", "Decision"]


class Decision(StrEnum):
    """What a scheduler decides about a running trial: an assessor's Good, Pause and Bad."""

    CONTINUE = "CONTINUE"
    PAUSE = "PAUSE"
    STOP = "STOP"


# Tune has one status for every end that is no failure, and one for all failures.
TUNE_STATUS: dict[TrialStatus, str] = {
    TrialStatus.WAITING: "PENDING",
    TrialStatus.RUNNING: "RUNNING",
    TrialStatus.PAUSED: "PAUSED",
    TrialStatus.SUCCEEDED: "TERMINATED",
    TrialStatus.FAILED: "ERROR",
    TrialStatus.EARLY_STOPPED: "TERMINATED",
    TrialStatus.USER_CANCELED: "TERMINATED",
    TrialStatus.SYS_CANCELED: "TERMINATED",
}
