"""The experiment's state machine: events in, effects out. Pure: no I/O, no clock, no threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .changes import AttemptRow, Changes, MetricRow
    from .description import warnings_of
    from .effects import (
        AttemptOrder,
        CopyCheckpoint,
        Effect,
        Finish,
        PauseTrial,
        RestoreDispatcher,
        SendCommand,
        StartTrial,
        StopTrial,
    )
    from .events import (
        AgentLost,
        AgentSilent,
        AttemptEnded,
        AttemptStarted,
        BadReport,
        CheckpointSaved,
        CompleteRequested,
        DataImported,
        DispatcherAnswered,
        DispatcherFailed,
        DispatcherReady,
        Event,
        ExecutorFailed,
        KillVerdict,
        LimitsChanged,
        NoMoreParameters,
        ParametersArrived,
        PauseVerdict,
        RecordBegun,
        Reported,
        ResourcesChanged,
        RestoreNeeded,
        ResumeRequested,
        RetryCancelledRequested,
        RetryFailedRequested,
        SearchSpaceChanged,
        StartRefused,
        StopRequested,
        Tick,
        TotalsChanged,
        TrialAddRequested,
        TrialKillRequested,
    )
    from .experiment_status import ExperimentStatus
    from .families import Repeats
    from .ledger import Ledger, Request, Totals
    from .limits import Limits, Retries
    from .payloads import added_trial
    from .recording import event_of, recorded
    from .trial import Cause, FailureKind, Trial, TrialStatus, Verdict
    from .trial_runner import TrialRunner
    from .verdicts import (
        TUNE_SOMETHING,
        TUNES_NOTHING,
        UNASKED,
        check_final,
        check_intermediate,
        fingerprint,
        is_disk_full,
        last_line,
        signal_name,
    )
    from .vocabulary import TUNE_STATUS

_HOMES = {
    ".changes": "AttemptRow Changes MetricRow",
    ".description": "warnings_of",
    ".effects": (
        "AttemptOrder CopyCheckpoint Effect Finish PauseTrial RestoreDispatcher SendCommand StartTrial "
        "StopTrial"
    ),
    ".events": (
        "AgentLost AgentSilent AttemptEnded AttemptStarted BadReport CheckpointSaved CompleteRequested "
        "DataImported DispatcherAnswered DispatcherFailed DispatcherReady Event ExecutorFailed "
        "KillVerdict LimitsChanged NoMoreParameters ParametersArrived PauseVerdict RecordBegun Reported "
        "ResourcesChanged RestoreNeeded ResumeRequested RetryCancelledRequested RetryFailedRequested "
        "SearchSpaceChanged StartRefused StopRequested Tick TotalsChanged TrialAddRequested "
        "TrialKillRequested"
    ),
    ".experiment_status": "ExperimentStatus",
    ".families": "Repeats",
    ".ledger": "Ledger Request Totals",
    ".limits": "Limits Retries",
    ".payloads": "added_trial",
    ".recording": "event_of recorded",
    ".trial": "Cause FailureKind Trial TrialStatus Verdict",
    ".trial_runner": "TrialRunner",
    ".verdicts": (
        "TUNES_NOTHING TUNE_SOMETHING UNASKED check_final check_intermediate fingerprint is_disk_full last_line "
        "signal_name"
    ),
    ".vocabulary": "TUNE_STATUS",
}

__all__ = [
    "TUNES_NOTHING",
    "TUNE_SOMETHING",
    "TUNE_STATUS",
    "UNASKED",
    "AgentLost",
    "AgentSilent",
    "AttemptEnded",
    "AttemptOrder",
    "AttemptRow",
    "AttemptStarted",
    "BadReport",
    "Cause",
    "Changes",
    "CheckpointSaved",
    "CompleteRequested",
    "CopyCheckpoint",
    "DataImported",
    "DispatcherAnswered",
    "DispatcherFailed",
    "DispatcherReady",
    "Effect",
    "Event",
    "ExecutorFailed",
    "ExperimentStatus",
    "FailureKind",
    "Finish",
    "KillVerdict",
    "Ledger",
    "Limits",
    "LimitsChanged",
    "MetricRow",
    "NoMoreParameters",
    "ParametersArrived",
    "PauseTrial",
    "PauseVerdict",
    "RecordBegun",
    "Repeats",
    "Reported",
    "Request",
    "ResourcesChanged",
    "RestoreDispatcher",
    "RestoreNeeded",
    "ResumeRequested",
    "Retries",
    "RetryCancelledRequested",
    "RetryFailedRequested",
    "SearchSpaceChanged",
    "SendCommand",
    "StartRefused",
    "StartTrial",
    "StopRequested",
    "StopTrial",
    "Tick",
    "Totals",
    "TotalsChanged",
    "Trial",
    "TrialAddRequested",
    "TrialKillRequested",
    "TrialRunner",
    "TrialStatus",
    "Verdict",
    "added_trial",
    "check_final",
    "check_intermediate",
    "event_of",
    "fingerprint",
    "is_disk_full",
    "last_line",
    "recorded",
    "signal_name",
    "warnings_of",
]

if not TYPE_CHECKING:  # a type checker must see which names there are
    __getattr__ = lazy_names(__name__, _HOMES)
