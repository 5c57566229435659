"""What the runner has decided: changes to commit, and effects that the manager performs only after that commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..protocol import CommandType
from .trial import FailureKind, Trial


@dataclass(slots=True)
class Effect:
    """Something to do; `cause` is the cause of the event that it follows from."""

    cause: str = field(default="", kw_only=True, compare=False, repr=False)


@dataclass(slots=True)
class SendCommand(Effect):
    """A command for the dispatcher, numbered when it is committed; `is_periodical` marks an intermediate result."""

    command: CommandType
    payload: str
    is_periodical: bool = False


@dataclass(slots=True, kw_only=True)
class AttemptOrder:
    """One attempt of one trial, and where it runs; committed to the store before it is performed."""

    trial_id: str
    attempt: int
    sequence_id: int
    record: str  # a `ParameterRecord` as JSON text
    slot: int
    agent: str
    gpus: tuple[int, ...] | None = None
    first_sequence: int = 0  # the number of the first intermediate result
    start_time: float | None = None
    checkpoint: str | None = None  # a path in the experiment's folder
    budget: float | None = None
    mark: str = ""  # tells the trial from one with the same number and id, which the store has forgotten


@dataclass(slots=True)
class StartTrial(Effect):
    """Start an attempt on an executor."""

    order: AttemptOrder


@dataclass(slots=True)
class StopTrial(Effect):
    """End a running attempt."""

    trial_id: str
    attempt: int


@dataclass(slots=True)
class PauseTrial(Effect):
    """Have a running attempt save a checkpoint and end."""

    trial_id: str
    attempt: int


@dataclass(slots=True)
class CopyCheckpoint(Effect):
    """Clone a checkpoint for another trial; both are paths in the experiment's folder.

    It comes before any later `StartTrial`, so that the source cannot be pruned in between.
    """

    source: str
    target: str


@dataclass(slots=True)
class RestoreDispatcher(Effect):
    """Start the dispatcher again and bring it to where it was, or give a new one only the results so far."""

    reason: str
    from_results: bool = False


@dataclass(slots=True)
class Finish(Effect):
    """The experiment is over; its status says how."""


# ------------------------------------------------------------------ changes, in the form that the store takes


@dataclass(slots=True)
class MetricRow:
    """One reported result. The fields are positional because that is faster."""

    trial: Trial
    attempt: int
    kind: str
    sequence: int
    value: str
    time: float


@dataclass(slots=True, kw_only=True)
class AttemptRow:
    """An attempt after which its trial was retried or paused, which is its `outcome`."""

    sequence_id: int
    attempt: int
    outcome: str
    agent: str | None
    start_time: float | None
    end_time: float
    reason: str
    kind: FailureKind | None = None
    exit_code: int | None = None
    error: str | None = None


@dataclass(slots=True, kw_only=True)
class Changes:
    """What has changed since the last commit."""

    trials: dict[str, Trial] = field(default_factory=dict)
    metrics: list[MetricRow] = field(default_factory=list)
    attempts: list[AttemptRow] = field(default_factory=list)
    # (sequence id, last attempt, sequence): the results from `sequence` on, up to that attempt, no longer count.
    superseded: list[tuple[int, int, int]] = field(default_factory=list)
    exports: list[tuple[int, str, str]] = field(default_factory=list)  # (sequence id, format, path)
    code: dict[str, str] = field(default_factory=dict)  # what trials loaded, as JSON, by its digest


class Pending:
    """Collects the effects and the changes of all parts of the runner; `now` is the time of the present event."""

    __slots__ = ("changes", "effects", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.effects: list[Effect] = []
        self.changes = Changes()

    def send(self, command: CommandType, payload: str, *, is_periodical: bool = False) -> None:
        """Add a command for the dispatcher to the effects."""
        self.effects.append(SendCommand(command, payload, is_periodical))

    def note(self, trial: Trial) -> None:
        """Add a trial to the next commit."""
        self.changes.trials[trial.trial_id] = trial

    def take_changes(self) -> Changes:
        """Return what has changed since the last call."""
        changes, self.changes = self.changes, Changes()
        return changes
