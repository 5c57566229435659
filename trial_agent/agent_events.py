"""What an agent reports to the manager: six kinds of event, each with the fields of its JSON message, in their order.

`e` names the kind; times are seconds since the epoch; `mark` distinguishes the trial from a forgotten one with the same
id. An attempt may report thousands of results a second, so the classes are neither frozen nor slotted: the fields of an
event are its message without being copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from operator import itemgetter
from typing import Literal

from .messages import Message, MessageError

ReportKind = Literal["intermediate", "final"]


@dataclass(kw_only=True)
class Started:
    """The process of an attempt runs (a function trial's is the agent's own); `note` is about warm starts."""

    e: Literal["started"] = field(default="started", repr=False)
    trial: str
    attempt: int
    pid: int | None = None
    time: float
    note: str | None = None
    mark: str = ""


@dataclass
class Report:
    """A result; `value` is the JSON text of what was reported. The fields are positional because that is faster."""

    e: Literal["report"] = field(default="report", kw_only=True, repr=False)
    trial: str
    attempt: int
    kind: ReportKind
    sequence: int
    value: str
    time: float
    mark: str = ""


@dataclass(kw_only=True)
class Saved:
    """A checkpoint: the trial continues from it with result number `sequence`."""

    e: Literal["checkpoint"] = field(default="checkpoint", repr=False)
    trial: str
    attempt: int
    name: str
    sequence: int
    value: float | None = None
    time: float
    mark: str = ""


@dataclass(kw_only=True)
class Problem:
    """Something in the spool that cannot be understood; with `infra`, the machine is at fault."""

    e: Literal["problem"] = field(default="problem", repr=False)
    trial: str
    attempt: int
    message: str
    infra: bool = field(default=False, repr=False)
    mark: str = ""

    def __post_init__(self) -> None:
        if not self.infra:
            del self.infra  # the default is that of the class: the message has it only if it applies
        self.message = _sendable(self.message)


@dataclass(kw_only=True)
class Ended:
    """The end of an attempt, after every report of that attempt.

    `exported` has paths by format. With `infra`, the machine refused what the agent needs, and not the trial's code.
    With `unasked`, it reported through the functions of this package, and nothing ever read its parameters.
    """

    e: Literal["ended"] = field(default="ended", repr=False)
    trial: str
    attempt: int
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    killed: bool = False
    paused: bool = False
    time: float
    out_of_memory: bool = False
    infra: bool = field(default=False, repr=False)
    exported: Mapping[str, str] | None = None
    unasked: bool = field(default=False, repr=False)
    mark: str = ""

    def __post_init__(self) -> None:
        if not self.infra:
            del self.infra  # as above
        if not self.unasked:
            del self.unasked
        if self.error is not None:
            self.error = _sendable(self.error)
        if self.exported:
            self.exported = {_sendable(name): _sendable(path) for name, path in self.exported.items()}

    def outcome(self) -> Message:
        """Return how the attempt ended, for the last line in its spool.

        >>> Ended(trial="AbCdE", attempt=1, exit_code=0, time=12.5).outcome()
        {'exit_code': 0, 'signal': None, 'error': None, 'killed': False, 'paused': False, 'time': 12.5}
        """
        return {
            name: value
            for name, value in vars(self).items()
            if name not in _WHO and (value or name not in _RARE)
        }


@dataclass(kw_only=True)
class Forgotten:
    """The reply to the start of an attempt whose end only the spool can tell.

    Its events were all acknowledged, by an earlier manager perhaps; or the folder was replaced while it ran; or it ran
    on another agent of this name, which is gone.
    """

    e: Literal["forgotten"] = field(default="forgotten", repr=False)
    trial: str
    attempt: int
    mark: str = ""


Event = Started | Report | Saved | Problem | Ended | Forgotten

# Each kind, and what raises KeyError for a message without one of its fields that have no default.
_KINDS: dict[str, tuple[type[Event], Callable[[Message], object]]] = {
    kind.e: (kind, itemgetter(*(each.name for each in fields(kind) if each.default is MISSING)))
    for kind in (Started, Report, Saved, Problem, Ended, Forgotten)
}
_WHO = frozenset({"e", "trial", "attempt", "mark"})
_RARE = frozenset({"out_of_memory", "infra", "exported", "unasked"})  # in a spool only if they apply


def encode_event(event: Event) -> Message:
    """Return the message of an event, which shares its fields.

    >>> encode_event(Report("AbCdE", 1, "final", 0, "0.9", 12.5))["value"]
    '0.9'
    """
    return vars(event)


def decode_events(messages: Iterable[Message]) -> list[Event]:
    """Return the events in messages; raise `MessageError` if one is invalid.

    >>> decode_events([{"e": "problem", "trial": "AbCdE", "attempt": 1, "message": "line 3 is not JSON"}])
    [Problem(trial='AbCdE', attempt=1, message='line 3 is not JSON', mark='')]
    """
    try:
        return _events(messages)
    except (KeyError, TypeError) as error:
        raise MessageError(f"an agent's event is invalid: {type(error).__name__}: {error}") from error


def _events(messages: Iterable[Message]) -> list[Event]:
    found: list[Event] = []
    for message in messages:
        kind, needed = _KINDS[message["e"]]
        needed(message)
        event = object.__new__(kind)
        event.__dict__ = message  # a default is an attribute of the class
        found.append(event)
    return found


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can encode: users' file names and messages may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")
