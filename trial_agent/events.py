"""What an agent reports to the manager: five kinds of event, and the JSON message of each.

In a message `e` names the kind; times are seconds since the epoch; `mark` distinguishes the trial from a forgotten one
with the same id; an empty one is left out. An attempt may report thousands of results a second, so the classes are
neither frozen nor slotted, and each writes and reads its own message: generic code takes several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from .messages import Message, MessageError

__all__ = ["Ended", "Event", "Problem", "Report", "ReportKind", "Saved", "Started", "decode_events"]

ReportKind = Literal["intermediate", "final"]


@dataclass(kw_only=True)
class Started:
    """The process of an attempt runs (a function trial's is the agent's own)."""

    trial: str
    attempt: int
    pid: int | None
    time: float
    mark: str = ""

    def message(self) -> Message:
        """Return the message that `of` reads."""
        fields = {"trial": self.trial, "attempt": self.attempt, "pid": self.pid, "time": self.time}
        return {"e": "started", **fields, **_marked(self.mark)}

    @classmethod
    def of(cls, message: Message) -> Started:
        """Read a message."""
        return cls(
            trial=message["trial"],
            attempt=message["attempt"],
            pid=message.get("pid"),
            time=message["time"],
            mark=message.get("mark", ""),
        )


@dataclass
class Report:
    """A result; `value` is the JSON text of what was reported. The fields are positional because that is faster."""

    trial: str
    attempt: int
    kind: ReportKind
    sequence: int
    value: str
    time: float
    mark: str = ""

    def message(self) -> Message:
        """Return the message that `of` reads.

        >>> Report("AbCdE", 1, "final", 0, "0.9", 12.5, "5f").message() == {
        ...     "e": "report", "trial": "AbCdE", "attempt": 1, "kind": "final", "sequence": 0, "value": "0.9",
        ...     "time": 12.5, "mark": "5f"}
        True
        """
        message = {
            "e": "report",
            "trial": self.trial,
            "attempt": self.attempt,
            "kind": self.kind,
            "sequence": self.sequence,
            "value": self.value,
            "time": self.time,
        }
        if self.mark:
            message["mark"] = self.mark
        return message

    @classmethod
    def of(cls, message: Message) -> Report:
        """Read a message."""
        return cls(
            message["trial"],
            message["attempt"],
            message["kind"],
            message["sequence"],
            message["value"],
            message["time"],
            message.get("mark", ""),
        )


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

    def message(self) -> Message:
        """Return the message that `of` reads."""
        return {
            "e": "checkpoint",
            "trial": self.trial,
            "attempt": self.attempt,
            "name": self.name,
            "sequence": self.sequence,
            "value": self.value,
            "time": self.time,
            **_marked(self.mark),
        }

    @classmethod
    def of(cls, message: Message) -> Saved:
        """Read a message."""
        return cls(
            trial=message["trial"],
            attempt=message["attempt"],
            name=message["name"],
            sequence=message["sequence"],
            value=message.get("value"),
            time=message["time"],
            mark=message.get("mark", ""),
        )


@dataclass
class Problem:
    """Something in the spool that cannot be understood."""

    trial: str
    attempt: int
    text: str
    mark: str = ""

    def __post_init__(self) -> None:
        self.text = _sendable(self.text)

    def message(self) -> Message:
        """Return the message that `of` reads."""
        fields = {"trial": self.trial, "attempt": self.attempt, "message": self.text}
        return {"e": "problem", **fields, **_marked(self.mark)}

    @classmethod
    def of(cls, message: Message) -> Problem:
        """Read a message."""
        return cls(message["trial"], message["attempt"], message["message"], message.get("mark", ""))


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

    def __post_init__(self) -> None:
        if self.error is not None:
            self.error = _sendable(self.error)
        if self.exported:
            self.exported = {_sendable(name): _sendable(path) for name, path in self.exported.items()}

    def outcome(self) -> Message:
        """Return how the attempt ended, for the last line in its spool; rare fields only if they apply.

        >>> Ended(trial="AbCdE", attempt=1, exit_code=0, time=12.5).outcome()
        {'exit_code': 0, 'signal': None, 'error': None, 'killed': False, 'paused': False, 'time': 12.5}
        """
        outcome: Message = {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "error": self.error,
            "killed": self.killed,
            "paused": self.paused,
            "time": self.time,
        }
        if self.out_of_memory:
            outcome["out_of_memory"] = True
        if self.exported:
            outcome["exported"] = self.exported
        return outcome

    def message(self) -> Message:
        """Return the message that `of` reads."""
        who = {"trial": self.trial, "attempt": self.attempt}
        return {"e": "ended", **who, **self.outcome(), **_marked(self.mark)}

    @classmethod
    def of(cls, message: Message) -> Ended:
        """Read a message."""
        return cls(
            trial=message["trial"],
            attempt=message["attempt"],
            exit_code=message.get("exit_code"),
            signal=message.get("signal"),
            error=message.get("error"),
            killed=bool(message.get("killed")),
            paused=bool(message.get("paused")),
            time=message["time"],
            out_of_memory=bool(message.get("out_of_memory")),
            exported=message.get("exported"),
            mark=message.get("mark", ""),
        )


Event = Started | Report | Saved | Problem | Ended

_READERS: dict[str, Callable[[Message], Event]] = {
    "started": Started.of,
    "report": Report.of,
    "checkpoint": Saved.of,
    "problem": Problem.of,
    "ended": Ended.of,
}


def decode_events(messages: Iterable[Message]) -> list[Event]:
    """Return the events in messages; raise `MessageError` if one is invalid.

    >>> decode_events([{"e": "problem", "trial": "AbCdE", "attempt": 1, "message": "line 3 is not JSON"}])
    [Problem(trial='AbCdE', attempt=1, text='line 3 is not JSON', mark='')]
    """
    try:
        return [_READERS[message["e"]](message) for message in messages]
    except (KeyError, TypeError) as error:
        raise MessageError(f"an agent's event is invalid: {type(error).__name__}: {error}") from error


def _marked(mark: str) -> Message:
    return {"mark": mark} if mark else {}


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can encode: users' file names and messages may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
