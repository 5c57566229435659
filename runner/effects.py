"""What the manager does about an event: the answers of `TrialRunner.handle`, performed only after the commit."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol import CommandType

__all__ = [
    "AttemptOrder",
    "CopyCheckpoint",
    "Effect",
    "Finish",
    "PauseTrial",
    "RestoreDispatcher",
    "SendCommand",
    "StartTrial",
    "StopTrial",
]


@dataclass(frozen=True, slots=True)
class AttemptOrder:
    """One attempt of one trial, and where it runs; committed to the store before it is performed.

    `checkpoint` is a path in the experiment's folder, `first_sequence` the number of the first intermediate result.
    `mark` tells the trial from another one that had its number and its id, and that the store has forgotten.
    """

    trial_id: str
    attempt: int
    sequence_id: int
    parameters: str
    slot: int
    agent: str
    gpus: tuple[int, ...] | None = None
    first_sequence: int = 0
    start_time: float | None = None
    checkpoint: str | None = None
    budget: float | None = None
    mark: str = ""


@dataclass(slots=True)
class SendCommand:
    """A command for the dispatcher, numbered when it is committed; `is_periodical` marks an intermediate result."""

    command: CommandType
    payload: str
    is_periodical: bool = False


@dataclass(slots=True)
class StartTrial:
    """Start an attempt on an executor."""

    order: AttemptOrder


@dataclass(slots=True)
class StopTrial:
    """End a running attempt."""

    trial_id: str
    attempt: int


@dataclass(slots=True)
class PauseTrial:
    """Have a running attempt save a checkpoint and end."""

    trial_id: str
    attempt: int


@dataclass(slots=True)
class CopyCheckpoint:
    """Clone a checkpoint for another trial; both are paths in the experiment's folder.

    It is done before any later `StartTrial`, so that nobody can prune it away in between.
    """

    source: str
    target: str


@dataclass(slots=True)
class RestoreDispatcher:
    """Start the dispatcher afresh and bring it to where it was."""

    reason: str


@dataclass(slots=True)
class Finish:
    """The experiment is over; its status says how."""


Effect = SendCommand | StartTrial | StopTrial | PauseTrial | CopyCheckpoint | RestoreDispatcher | Finish
