"""What can happen to an experiment: the only things that `TrialRunner.handle` accepts.

An event is plain data and carries the time at which it happened (seconds since the epoch, on the experiment's
clock), so that the runner needs no clock of its own and any history can be replayed in a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "BadReport",
    "DispatcherFailed",
    "DispatcherReady",
    "Event",
    "KillVerdict",
    "LimitsChanged",
    "NoMoreParameters",
    "ParametersArrived",
    "Reported",
    "ResourcesChanged",
    "StartRefused",
    "StopAsked",
    "Tick",
    "TrialKillAsked",
]


@dataclass(slots=True)
class DispatcherReady:
    """The dispatcher answered Initialized and takes requests."""

    time: float
    wants_periodical: bool = True


@dataclass(slots=True)
class ParametersArrived:
    """The tuner proposed parameters; `record` is the parameter record as JSON text."""

    time: float
    parameter_id: int | str | None
    record: str


@dataclass(slots=True)
class NoMoreParameters:
    """The tuner has nothing to propose at present."""

    time: float


@dataclass(slots=True)
class KillVerdict:
    """The assessor condemned a running trial."""

    time: float
    trial_id: str
    reason: str


@dataclass(slots=True)
class DispatcherFailed:
    """A plug-in raised, or the dispatcher process ended without being asked to."""

    time: float
    message: str
    where: str = ""
    traceback: str = ""
    command: int | None = None


@dataclass(slots=True)
class AttemptStarted:
    """The process or function of an attempt runs."""

    time: float
    trial_id: str
    attempt: int
    pid: int | None = None


@dataclass(slots=True)
class Reported:
    """An attempt reported a result; `value` is the JSON text of what it reported."""

    time: float
    trial_id: str
    attempt: int
    kind: Literal["intermediate", "final"]
    sequence: int
    value: str


@dataclass(slots=True)
class BadReport:
    """A line of the attempt's spool could not be understood."""

    time: float
    trial_id: str
    attempt: int
    message: str


@dataclass(slots=True)
class AttemptEnded:
    """An attempt is over; it arrives after every report of that attempt.

    `lost` means that nobody can say how it ended: its agent or node is gone.
    """

    time: float
    trial_id: str
    attempt: int
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    lost: bool = False


@dataclass(slots=True)
class StartRefused:
    """The executor could not start an attempt just now; `devices` are GPU indices that others hold."""

    time: float
    trial_id: str
    attempt: int
    reason: str
    devices: tuple[int, ...] = ()


@dataclass(slots=True)
class ResourcesChanged:
    """What the executor can give has changed: the GPUs that others hold now."""

    time: float
    busy_devices: tuple[int, ...] = ()


@dataclass(slots=True)
class TrialKillAsked:
    """A user asks for the end of one trial."""

    time: float
    trial_id: str


@dataclass(slots=True)
class StopAsked:
    """A user (or a signal) asks for the end of the experiment."""

    time: float
    reason: str = "the experiment was stopped"


@dataclass(slots=True)
class LimitsChanged:
    """A user changed a limit of the running experiment; None leaves a limit as it is."""

    time: float
    trial_concurrency: int | None = None
    max_trial_number: int | None = None
    max_experiment_duration: float | None = None


@dataclass(slots=True)
class Tick:
    """Time has passed: deadlines are looked at."""

    time: float


Event = (
    DispatcherReady
    | ParametersArrived
    | NoMoreParameters
    | KillVerdict
    | DispatcherFailed
    | AttemptStarted
    | Reported
    | BadReport
    | AttemptEnded
    | StartRefused
    | ResourcesChanged
    | TrialKillAsked
    | StopAsked
    | LimitsChanged
    | Tick
)
