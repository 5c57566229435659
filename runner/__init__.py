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
    from .experiment_state import ExperimentStatus
    from .family_rules import Repeats
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
else:
    __getattr__ = lazy_names(__name__, __file__)
