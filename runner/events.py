"""What can happen to an experiment. `TrialRunner.handle` takes all events but `ExecutorFailed`.

An event is plain data and carries the time at which it happened (seconds since the epoch, on the experiment's
clock). So the runner needs no clock, and a test can replay any history: a runner that handles all events of an
experiment again makes the same trials, changes and effects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypedDict

from ..protocol import AddedSource, Json, JsonObject, Parameters, added_record
from .ledger import Totals


@dataclass(slots=True)
class Event:
    """Something that happened, and its cause: `user: kill`, `timer`, an agent's name; for logs and recordings."""

    time: float
    cause: str = field(default="", kw_only=True, compare=False, repr=False)


@dataclass(slots=True)
class TrialEvent(Event):
    """Something that happened to one trial."""

    trial_id: str


@dataclass(slots=True)
class AttemptEvent(TrialEvent):
    """Something that happened to one attempt of a trial."""

    attempt: int


# ------------------------------------------------------------------ from the dispatcher


@dataclass(slots=True)
class DispatcherReady(Event):
    """The dispatcher has replied Initialized and takes requests."""

    wants_periodical: bool = True
    any_results: tuple[str, ...] = ()  # the kinds of results that need no number
    learns: bool = True  # a tuner that never does can be asked ahead


@dataclass(slots=True)
class ParametersArrived(Event):
    """The tuner proposed parameters; `record` is the parameter record as JSON text."""

    parameter_id: int | str | None
    record: str


@dataclass(slots=True)
class NoMoreParameters(Event):
    """The tuner has nothing to propose at present; `reason` says why, if the dispatcher decided that."""

    reason: str = ""


@dataclass(slots=True)
class KillVerdict(TrialEvent):
    """The assessor or the tuner ends a trial early."""

    reason: str


@dataclass(slots=True)
class PauseVerdict(TrialEvent):
    """The tuner pauses a trial: it gives up its slot and waits for a `ResumeRequested`."""

    reason: str


@dataclass(slots=True, kw_only=True)
class ResumeRequested(TrialEvent):
    """The tuner resumes a paused trial; one that still runs is paused first."""

    parameters: Parameters | None = None  # in place of its own
    checkpoint_of: str | None = None  # a trial from whose checkpoint it continues, in place of its own
    budget: float | None = None
    pauses_at_budget: bool = False  # it is paused again when it has spent its budget


@dataclass(slots=True)
class DispatcherAnswered(Event):
    """The dispatcher has handled all commands, and nothing else is under way."""


@dataclass(slots=True, kw_only=True)
class DispatcherFailed(Event):
    """A plug-in raised, or (`died`) the dispatcher process ended unasked or is silent."""

    message: str
    where: str = ""
    traceback: str = ""
    command: int | None = None  # the one at which it happened, or the first that was not handled
    died: bool = False

    @property
    def reason(self) -> str:
        """The message and, if it is known, the place in the code."""
        return f"{self.message} ({self.where})" if self.where else self.message


@dataclass(slots=True)
class RestoreNeeded(Event):
    """The dispatcher cannot continue though its plug-ins have not failed, as with a checkpoint that it cannot use."""

    reason: str
    from_results: bool = False  # because its tuner does not repeat what it replied before


@dataclass(slots=True)
class RecordBegun(Event):
    """A new dispatcher gets the results so far instead of the record, and one request for all the trials still owed."""


# ------------------------------------------------------------------ from executors


@dataclass(slots=True)
class AttemptStarted(AttemptEvent):
    """The process or function of an attempt runs."""

    pid: int | None = None


@dataclass(slots=True)
class Reported(AttemptEvent):
    """An attempt reported a result; `value` is its JSON text. The fields are positional because that is faster."""

    kind: Literal["intermediate", "final"]
    sequence: int
    value: str


@dataclass(slots=True)
class BadReport(AttemptEvent):
    """A line of the attempt's spool is not a valid report; with `infra`, the machine is at fault."""

    message: str
    infra: bool = field(default=False, kw_only=True)


@dataclass(slots=True, kw_only=True)
class CheckpointSaved(AttemptEvent):
    """An attempt saved a checkpoint; it arrives in order with the reports."""

    name: str  # of its folder in the `checkpoints` of the trial
    sequence: int  # the number of the next intermediate result
    value: float | None = None


@dataclass(slots=True, kw_only=True)
class AttemptEnded(AttemptEvent):
    """An attempt is over; it arrives after every report of that attempt."""

    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    lost: bool = False  # its agent or node is gone, so nothing is known about its end
    paused: bool = False  # it ended because of a pause
    out_of_memory: bool = False  # it was killed for its memory
    infra: bool = False  # the machine refused what the agent needs
    killed: bool = False  # its agent killed it, on request or because the agent was shut down
    exported: Mapping[str, str] | None = None  # the paths of what it exported, by format
    unasked: bool = False  # it reported, and has neither asked for its parameters nor got them by its command
    left_running: bool = False  # its command ended before programs that it had started
    code: str | None = None  # the digest of what its processes have loaded
    loaded: Mapping[str, Mapping[str, str]] | None = None  # that itself, unless its agent has said it before


@dataclass(slots=True, kw_only=True)
class StartRefused(AttemptEvent):
    """The executor could not start an attempt just now; `devices` are GPU indices that others hold."""

    reason: str
    devices: tuple[int, ...] = ()


@dataclass(slots=True)
class AgentSilent(Event):
    """An agent has given no sign of life for some seconds, or (`is_over`) gives them again."""

    agent: str
    is_over: bool = False


@dataclass(slots=True)
class AgentLost(Event):
    """An agent that ran nothing is gone or was given up."""

    agent: str


@dataclass(slots=True)
class ResourcesChanged(Event):
    """The GPUs that others hold are now `busy_devices`."""

    busy_devices: tuple[int, ...] = ()


@dataclass(slots=True)
class TotalsChanged(Event):
    """A node joined or left, which changes the totals."""

    totals: Totals


@dataclass(slots=True)
class ExecutorFailed(Event):
    """The executor can no longer run anything: the experiment ends in its present state, to be resumed.

    The manager raises it as an error; the runner never sees it, because nothing may change from then on.
    """

    reason: str


# ------------------------------------------------------------------ from users and the clock


@dataclass(slots=True)
class RetryFailedRequested(Event):
    """A user retries the failed trials of an earlier run, from their checkpoints or from the start."""

    from_checkpoint: bool = True


@dataclass(slots=True)
class RetryCancelledRequested(Event):
    """A user continues an experiment whose end cancelled trials."""


@dataclass(slots=True)
class TrialKillRequested(TrialEvent):
    """A user ends one trial."""


@dataclass(slots=True)
class TrialAddRequested(Event):
    """A user adds a trial; `record` is its parameter record (without an id) as JSON text."""

    record: str


@dataclass(slots=True)
class CompleteRequested(TrialEvent):
    """A stopper ends a trial that has done enough: `value`, the JSON text of a result, becomes its final result."""

    value: str
    reason: str


@dataclass(slots=True)
class StopRequested(Event):
    """A user, a signal or a stopper ends the experiment; `outcome` is the status it ends with."""

    reason: str = "the experiment was stopped"
    outcome: Literal["STOPPED", "DONE", "ERROR"] = "STOPPED"
    error: str = ""


@dataclass(slots=True)
class LimitsChanged(Event):
    """A user changed the limits of the running experiment: their new values; None lifts a bound."""

    trial_concurrency: int
    max_trial_number: int | None = None
    max_experiment_duration: float | None = None


@dataclass(slots=True)
class SearchSpaceChanged(Event):
    """A user changed the search space of the running experiment; `search_space` is its JSON text."""

    search_space: str


@dataclass(slots=True)
class DataImported(Event):
    """A user imports results measured elsewhere; `data` is the JSON text of a list of them."""

    data: str


@dataclass(slots=True)
class Tick(Event):
    """Time has passed: deadlines are checked."""


def added_trial(
    parameters: Mapping[str, Json], time: float, source: AddedSource = "customized"
) -> TrialAddRequested:
    """Return the event that adds a trial with a user's own parameters."""
    return TrialAddRequested(time, added_record(parameters, source), cause="user: add")


# ------------------------------------------------------------------ events as plain JSON values
#
# The manager commits users' requests in this form before it handles them: a request is refused only while nothing has
# happened, and the next manager carries out an accepted one if this one dies.

_KINDS: Mapping[str, type[Any]] = {
    name: kind for name, kind in globals().items() if isinstance(kind, type) and issubclass(kind, Event)
}


class RecordedEvent(TypedDict):
    """An event as plain JSON values: the name of its class, and its fields."""

    kind: str
    event: JsonObject


def recorded(event: Event) -> RecordedEvent:
    """Return an event as plain JSON values.

    >>> recorded(TrialKillRequested(12.5, "AbCdE", cause="user: kill"))
    {'kind': 'TrialKillRequested', 'event': {'time': 12.5, 'cause': 'user: kill', 'trial_id': 'AbCdE'}}
    """
    return {"kind": type(event).__name__, "event": asdict(event)}


def event_of(row: RecordedEvent) -> Event:
    """Return the event that was recorded.

    >>> event_of({"kind": "TrialKillRequested", "event": {"time": 12.5, "trial_id": "AbCdE"}})
    TrialKillRequested(time=12.5, trial_id='AbCdE')
    """
    kind, values = _KINDS[row["kind"]], _with_tuples(row["event"])
    if kind is TotalsChanged:
        values["totals"] = Totals(**_with_tuples(values["totals"]))
    return kind(**values)


def _with_tuples(values: JsonObject) -> JsonObject:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
