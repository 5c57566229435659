"""What can happen to an experiment. `TrialRunner.handle` accepts all of it but `ExecutorFailed`.

An event is plain data and carries the time at which it happened (seconds since the epoch, on the experiment's
clock), so that the runner needs no clock of its own and any history can be replayed in a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .ledger import Totals

__all__ = [
    "AgentLost",
    "AgentSilent",
    "AttemptEnded",
    "AttemptStarted",
    "BadReport",
    "CheckpointSaved",
    "CompleteRequested",
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
    "ResumeRequested",
    "RetryFailedRequested",
    "SearchSpaceChanged",
    "StartRefused",
    "StopRequested",
    "Tick",
    "TotalsChanged",
    "TrialAddRequested",
    "TrialKillRequested",
]


@dataclass(slots=True)
class _Event:
    """When something happened, and what caused it: `user: kill`, `timer`, an agent's name; for logs and recordings."""

    time: float
    cause: str = field(default="", kw_only=True, compare=False, repr=False)


@dataclass(slots=True)
class DispatcherReady(_Event):
    """The dispatcher answered Initialized and takes requests."""

    wants_periodical: bool = True


@dataclass(slots=True)
class ParametersArrived(_Event):
    """The tuner proposed parameters; `record` is the parameter record as JSON text."""

    parameter_id: int | str | None
    record: str


@dataclass(slots=True)
class NoMoreParameters(_Event):
    """The tuner has nothing to propose at present."""


@dataclass(slots=True)
class KillVerdict(_Event):
    """The assessor condemned a running trial."""

    trial_id: str
    reason: str


@dataclass(slots=True)
class PauseVerdict(_Event):
    """A trial shall be paused: it gives up its slot and waits for a `ResumeRequested`."""

    trial_id: str
    reason: str


@dataclass(slots=True)
class ResumeRequested(_Event):
    """A paused trial shall go on: from its own checkpoint or that of the trial `checkpoint_of`.

    `parameters` replace the trial's own; a trial that still runs is paused first. With `pauses_at_budget` it is
    paused again where it has spent its budget.
    """

    trial_id: str
    parameters: dict[str, Any] | None = None
    checkpoint_of: str | None = None
    budget: float | None = None
    pauses_at_budget: bool = False


@dataclass(slots=True)
class RetryFailedRequested(_Event):
    """A user lets the failed trials of an earlier run try again, from their checkpoints or from the start."""

    from_checkpoint: bool = True


@dataclass(slots=True)
class DispatcherAnswered(_Event):
    """The dispatcher has done all that it was sent, and nothing else is under way."""


@dataclass(slots=True)
class DispatcherFailed(_Event):
    """A plug-in raised, or the dispatcher process ended without being asked to or is silent (`died`).

    `command` is the number of the command at which it happened, or of the first that was not done.
    """

    message: str
    where: str = ""
    traceback: str = ""
    command: int | None = None
    died: bool = False


@dataclass(slots=True)
class AttemptStarted(_Event):
    """The process or function of an attempt runs."""

    trial_id: str
    attempt: int
    pid: int | None = None


@dataclass(slots=True)
class Reported(_Event):
    """An attempt reported a result; `value` is the JSON text of what it reported."""

    trial_id: str
    attempt: int
    kind: Literal["intermediate", "final"]
    sequence: int
    value: str


@dataclass(slots=True)
class BadReport(_Event):
    """A line of the attempt's spool could not be understood."""

    trial_id: str
    attempt: int
    message: str


@dataclass(slots=True)
class CheckpointSaved(_Event):
    """An attempt saved a checkpoint; it arrives in order with the reports.

    `name` is its folder in the `checkpoints` of the trial, `sequence` the number of the next intermediate result.
    """

    trial_id: str
    attempt: int
    name: str
    sequence: int
    value: float | None = None


@dataclass(slots=True)
class AttemptEnded(_Event):
    """An attempt is over; it arrives after every report of that attempt.

    `lost` means that nobody can say how it ended: its agent or node is gone. `paused`: it ended because it was told to
    pause. `killed`: its agent killed it because it was told to, or was itself told to leave. `out_of_memory`: its agent
    knows that it was killed for its memory. `exported`: the paths of what it exported, by format.
    """

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
class StartRefused(_Event):
    """The executor could not start an attempt just now; `devices` are GPU indices that others hold."""

    trial_id: str
    attempt: int
    reason: str
    devices: tuple[int, ...] = ()


@dataclass(slots=True)
class AgentSilent(_Event):
    """An agent has given no sign of life for some seconds, or (`is_over`) gives them again."""

    agent: str
    is_over: bool = False


@dataclass(slots=True)
class AgentLost(_Event):
    """An agent that ran nothing is gone, or was given up."""

    agent: str


@dataclass(slots=True)
class ResourcesChanged(_Event):
    """What the executor can give has changed: the GPUs that others hold now."""

    busy_devices: tuple[int, ...] = ()


@dataclass(slots=True)
class TotalsChanged(_Event):
    """There is more or less to give out: a node came or went."""

    totals: Totals


@dataclass(slots=True)
class ExecutorFailed(_Event):
    """The executor can run nothing any more: the experiment ends as it stands, to be resumed.

    The manager raises it as an error; the runner does not see it, because nothing may change any more.
    """

    reason: str


@dataclass(slots=True)
class TrialKillRequested(_Event):
    """A user asks for the end of one trial."""

    trial_id: str


@dataclass(slots=True)
class TrialAddRequested(_Event):
    """A user adds a trial of their own; `record` is its parameter record (without an id) as JSON text."""

    record: str


@dataclass(slots=True)
class CompleteRequested(_Event):
    """A stopper says that a trial has done enough: `value`, the JSON text of a result, becomes its final result."""

    trial_id: str
    value: str
    reason: str


@dataclass(slots=True)
class StopRequested(_Event):
    """A user, a signal or a stopper asks for the end of the experiment; `outcome` is the status it ends with."""

    reason: str = "the experiment was stopped"
    outcome: Literal["STOPPED", "DONE", "ERROR"] = "STOPPED"
    error: str = ""


@dataclass(slots=True)
class LimitsChanged(_Event):
    """A user changed the limits of the running experiment: all of them as they are now, None is no bound."""

    trial_concurrency: int
    max_trial_number: int | None = None
    max_experiment_duration: float | None = None


@dataclass(slots=True)
class SearchSpaceChanged(_Event):
    """A user changed the search space of the running experiment; `search_space` is its JSON text."""

    search_space: str


@dataclass(slots=True)
class DataImported(_Event):
    """A user tells the tuner results measured elsewhere; `data` is the JSON text of a list of them."""

    data: str


@dataclass(slots=True)
class Tick(_Event):
    """Time has passed: deadlines are looked at."""


Event = (
    DispatcherReady
    | ParametersArrived
    | NoMoreParameters
    | KillVerdict
    | PauseVerdict
    | ResumeRequested
    | RetryFailedRequested
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
    | TrialKillRequested
    | TrialAddRequested
    | CompleteRequested
    | StopRequested
    | LimitsChanged
    | SearchSpaceChanged
    | DataImported
    | Tick
)
