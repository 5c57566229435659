"""What the manager does about an event: `TrialRunner.handle` returns effects, performed only after the commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..protocol import CommandType


@dataclass(slots=True, kw_only=True)
class AttemptOrder:
    """One attempt of one trial, and where it runs; committed to the store before it is performed.

    `record` is the parameter record as JSON text (`protocol/record.py`).
    `checkpoint` is a path in the experiment's folder, `first_sequence` the number of the first intermediate result.
    `mark` distinguishes the trial from a forgotten one that had its number and its id.
    """

    trial_id: str
    attempt: int
    sequence_id: int
    record: str
    slot: int
    agent: str
    gpus: tuple[int, ...] | None = None
    first_sequence: int = 0
    start_time: float | None = None
    checkpoint: str | None = None
    budget: float | None = None
    mark: str = ""


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
