"""What can happen to an experiment. `TrialRunner.handle` accepts all of it but `ExecutorFailed`.

An event is plain data and carries the time at which it happened (seconds since the epoch, on the experiment's
clock), so that the runner needs no clock of its own and any history can be replayed in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .ledger import Totals

__all__ = [
    "AgentLost",
    "AgentSilent",
    "AttemptEnded",
    "AttemptStarted",
    "BadReport",
    "CheckpointSaved",
    "CompleteAsked",
    "DataImported",
    "DispatcherAnswered",
    "DispatcherFailed",
    "DispatcherReady",
    "Event",
    "ExecutorFailed",
    "KillVerdict",
    "LimitsChanged",
    "NoMoreParameters",
    "ParametersArrived",
    "PauseVerdict",
    "Reported",
    "ResourcesChanged",
    "ResumeAsked",
    "ReviveAsked",
    "SearchSpaceChanged",
    "StartRefused",
    "StopAsked",
    "Tick",
    "TotalsChanged",
    "TrialAddAsked",
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
class PauseVerdict:
    """A trial shall be paused: it gives up its slot and waits for a `ResumeAsked`."""

    time: float
    trial_id: str
    reason: str


@dataclass(slots=True)
class ResumeAsked:
    """A paused trial shall go on: from its own checkpoint or that of the trial `checkpoint_of`.

    `parameters` replace the trial's own; a trial that still runs is paused first. With `pauses_at_budget` it is
    paused again where it has spent its budget.
    """

    time: float
    trial_id: str
    parameters: dict[str, Any] | None = None
    checkpoint_of: str | None = None
    budget: float | None = None
    pauses_at_budget: bool = False


@dataclass(slots=True)
class ReviveAsked:
    """A user lets the failed trials of an earlier run try again, from their checkpoints or from the start."""

    time: float
    from_checkpoint: bool = True


@dataclass(slots=True)
class DispatcherAnswered:
    """The dispatcher has done all that it was sent, and nothing else is under way."""

    time: float


@dataclass(slots=True)
class DispatcherFailed:
    """A plug-in raised, or the dispatcher process ended without being asked to or is silent (`died`).

    `command` is the number of the command at which it happened, or of the first that was not done.
    """

    time: float
    message: str
    where: str = ""
    traceback: str = ""
    command: int | None = None
    died: bool = False


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
class CheckpointSaved:
    """An attempt saved a checkpoint; it arrives in order with the reports.

    `name` is its folder in the `checkpoints` of the trial, `sequence` the number of the next intermediate result.
    """

    time: float
    trial_id: str
    attempt: int
    name: str
    sequence: int
    value: float | None = None


@dataclass(slots=True)
class AttemptEnded:
    """An attempt is over; it arrives after every report of that attempt.

    `lost` means that nobody can say how it ended: its agent or node is gone. `paused`: it ended because it was told to
    pause. `killed`: its agent killed it because it was told to, or was itself told to leave. `out_of_memory`: its agent
    knows that it was killed for its memory. `exported`: the paths of what it exported, by format.
    """

    time: float
    trial_id: str
    attempt: int
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    lost: bool = False
    paused: bool = False
    out_of_memory: bool = False
    killed: bool = False
    exported: Mapping[str, str] | None = None


@dataclass(slots=True)
class StartRefused:
    """The executor could not start an attempt just now; `devices` are GPU indices that others hold."""

    time: float
    trial_id: str
    attempt: int
    reason: str
    devices: tuple[int, ...] = ()


@dataclass(slots=True)
class AgentSilent:
    """An agent has given no sign of life for some seconds, or (`is_over`) gives them again."""

    time: float
    agent: str
    is_over: bool = False


@dataclass(slots=True)
class AgentLost:
    """An agent that ran nothing is gone, or was given up."""

    time: float
    agent: str


@dataclass(slots=True)
class ResourcesChanged:
    """What the executor can give has changed: the GPUs that others hold now."""

    time: float
    busy_devices: tuple[int, ...] = ()


@dataclass(slots=True)
class TotalsChanged:
    """There is more or less to give out: a node came or went."""

    time: float
    totals: Totals


@dataclass(slots=True)
class ExecutorFailed:
    """The executor can run nothing any more: the experiment ends as it stands, to be resumed.

    The manager raises it as an error; the runner does not see it, because nothing may change any more.
    """

    time: float
    reason: str


@dataclass(slots=True)
class TrialKillAsked:
    """A user asks for the end of one trial."""

    time: float
    trial_id: str


@dataclass(slots=True)
class TrialAddAsked:
    """A user adds a trial of their own; `record` is its parameter record (without an id) as JSON text."""

    time: float
    record: str


@dataclass(slots=True)
class CompleteAsked:
    """A stopper says that a trial has done enough: `value`, the JSON text of a result, becomes its final result."""

    time: float
    trial_id: str
    value: str
    reason: str


@dataclass(slots=True)
class StopAsked:
    """A user, a signal or a stopper asks for the end of the experiment; `outcome` is the status it ends with."""

    time: float
    reason: str = "the experiment was stopped"
    outcome: Literal["STOPPED", "DONE", "ERROR"] = "STOPPED"
    error: str = ""


@dataclass(slots=True)
class LimitsChanged:
    """A user changed the limits of the running experiment: all of them as they are now, None is no bound."""

    time: float
    trial_concurrency: int
    max_trial_number: int | None = None
    max_experiment_duration: float | None = None


@dataclass(slots=True)
class SearchSpaceChanged:
    """A user changed the search space of the running experiment; `search_space` is its JSON text."""

    time: float
    search_space: str


@dataclass(slots=True)
class DataImported:
    """A user tells the tuner results measured elsewhere; `data` is the JSON text of a list of them."""

    time: float
    data: str


@dataclass(slots=True)
class Tick:
    """Time has passed: deadlines are looked at."""

    time: float


Event = (
    DispatcherReady
    | ParametersArrived
    | NoMoreParameters
    | KillVerdict
    | PauseVerdict
    | ResumeAsked
    | ReviveAsked
    | DispatcherAnswered
    | DispatcherFailed
    | AttemptStarted
    | Reported
    | BadReport
    | CheckpointSaved
    | AttemptEnded
    | StartRefused
    | AgentSilent
    | AgentLost
    | ResourcesChanged
    | TotalsChanged
    | ExecutorFailed
    | TrialKillAsked
    | TrialAddAsked
    | CompleteAsked
    | StopAsked
    | LimitsChanged
    | SearchSpaceChanged
    | DataImported
    | Tick
)
