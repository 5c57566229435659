"""Ray Tune's names for the statuses of a trial."""

from __future__ import annotations

from ...runner import TrialStatus

# Tune has one status for all failures and one for every other end.
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
