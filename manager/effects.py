"""What the manager does about an event: the answers of `TrialRunner.handle`, performed only after the commit."""

from __future__ import annotations

from dataclasses import dataclass

from ..protocol import CommandType
from .executor import AttemptOrder

__all__ = [
    "CopyCheckpoint",
    "Effect",
    "Finish",
    "PauseTrial",
    "RestoreDispatcher",
    "SendCommand",
    "StartTrial",
    "StopTrial",
]


@dataclass(slots=True)
class SendCommand:
    """A command for the dispatcher; the manager numbers it when it is committed."""

    command: CommandType
    payload: str


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
