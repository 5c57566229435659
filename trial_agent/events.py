"""What an agent reports to the manager: five kinds of event, whose fields are those of their messages.

`e` names the kind; times are seconds since the epoch; `mark` tells the trial from a forgotten one with the same id. The
classes are neither frozen nor slotted, and a report takes its fields by position: all else takes several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .messages import Message, decode

__all__ = [
    "Ended",
    "Event",
    "Problem",
    "Report",
    "ReportKind",
    "Saved",
    "Started",
    "decode_event",
    "outcome_of",
]

ReportKind = Literal["intermediate", "final"]


@dataclass(kw_only=True)
class Started:
    """The process of an attempt runs (a function trial's is the agent's own)."""

    trial: str
    attempt: int
    pid: int | None
    time: float
    mark: str = ""
    e: Literal["started"] = "started"


@dataclass
class Report:
    """A result; `value` is the JSON text of what was reported."""

    trial: str
    attempt: int
    kind: ReportKind
    sequence: int
    value: str
    time: float
    mark: str = ""
    e: Literal["report"] = "report"


@dataclass(kw_only=True)
class Saved:
    """A checkpoint: the trial continues from it with result number `sequence`."""

    trial: str
    attempt: int
    name: str
    sequence: int
    value: float | None = None
    time: float
    mark: str = ""
    e: Literal["checkpoint"] = "checkpoint"


@dataclass
class Problem:
    """Something in the spool that cannot be understood."""

    trial: str
    attempt: int
    message: str
    mark: str = ""
    e: Literal["problem"] = "problem"

    def __post_init__(self) -> None:
        self.message = _sendable(self.message)


@dataclass(kw_only=True)
class Ended:
    """The end of an attempt, after every report of that attempt; `exported` has paths by format."""

    trial: str
    attempt: int
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    killed: bool = False
    paused: bool = False
    time: float
    out_of_memory: bool = False
    exported: Mapping[str, str] | None = None
    mark: str = ""
    e: Literal["ended"] = "ended"

    def __post_init__(self) -> None:
        if self.error is not None:
            self.error = _sendable(self.error)


_OUTCOME = ("exit_code", "signal", "error", "killed", "paused", "time")
Event = Started | Report | Saved | Problem | Ended

_KINDS: dict[str, type[Event]] = {
    "started": Started,
    "report": Report,
    "checkpoint": Saved,
    "problem": Problem,
    "ended": Ended,
}


def decode_event(message: Message) -> Event:
    """Return the event in a message; raise `MessageError` if it makes no sense.

    >>> decode_event({"e": "problem", "trial": "AbCdE", "attempt": 1, "message": "line 3 is not JSON"}).message
    'line 3 is not JSON'
    """
    return decode("e", _KINDS, message)


def outcome_of(ended: Ended) -> Message:
    """Return how an attempt ended, for the last line in its spool.

    >>> outcome_of(Ended(trial="AbCdE", attempt=1, exit_code=0, time=12.5))
    {'exit_code': 0, 'signal': None, 'error': None, 'killed': False, 'paused': False, 'time': 12.5}
    """
    optional = {name: getattr(ended, name) for name in ("out_of_memory", "exported")}
    always = {name: getattr(ended, name) for name in _OUTCOME}
    return {**always, **{name: value for name, value in optional.items() if value}}


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can carry: file names and messages of users may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
