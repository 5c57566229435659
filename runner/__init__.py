"""The experiment's state machine: events in, effects out. Pure: no I/O, no clock, no threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .effects import (
        AttemptOrder,
        AttemptRow,
        Changes,
        CopyCheckpoint,
        Effect,
        Finish,
        MetricRow,
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
        RecordedEvent,
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
        added_trial,
        event_of,
        recorded,
    )
    from .experiment_state import ExperimentStatus, Limits, RateMeter, Retries, forecast
    from .family_rules import Repeats
    from .ledger import Ledger, Request, Totals
    from .trial import Cause, FailureKind, Trial, TrialStatus, Verdict
    from .trial_runner import TrialRunner
    from .verdicts import (
        TUNE_SOMETHING,
        TUNES_NOTHING,
        UNASKED,
        check_final,
        fault_of_intermediate,
        fingerprint,
        is_disk_full,
        last_line,
        signal_name,
    )
    from .waits import Wait
else:
    __getattr__ = lazy_names(__name__, __file__)
