"""What the manager asks of an agent: one class per request, and its form as a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .checkpoint_store import Keeping
from .job import RunSpec
from .messages import Message

__all__ = [
    "Hello",
    "Kill",
    "Pause",
    "Ping",
    "Poll",
    "ReadFile",
    "Request",
    "Shutdown",
    "Start",
    "decode_request",
    "encode_request",
]


@dataclass(frozen=True, slots=True)
class Hello:
    """Identify yourself: the reply names the agent, its process and what it runs."""

    token: str = ""
    experiment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Run an attempt; `parameters` is the parameter record as JSON text, `checkpoint` a path in the folder."""

    trial: str
    attempt: int
    sequence_id: int
    parameters: str
    first_sequence: int = 0
    gpus: Sequence[int] | None = None
    checkpoint: str | None = None
    budget: float | None = None
    keep: Keeping = field(default_factory=Keeping)
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Kill:
    """End an attempt, `grace` seconds after asking it to end (None: the experiment's grace)."""

    trial: str
    attempt: int
    grace: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Let an attempt save a checkpoint, then end it."""

    trial: str
    attempt: int
    grace: float | None = None


@dataclass(frozen=True, slots=True)
class Ping:
    """Give a sign of life."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Forget the events up to `after` and return the next ones."""

    after: int


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Return a part of a file of the experiment's folder."""

    path: str
    offset: int
    limit: int


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Kill what runs and exit."""


Request = RunSpec | Hello | Start | Kill | Pause | Ping | Poll | ReadFile | Shutdown

_KINDS: dict[str, type[Hello | Start | Kill | Pause | Ping | Poll | ReadFile | Shutdown]] = {
    "hello": Hello,
    "start": Start,
    "kill": Kill,
    "pause": Pause,
    "ping": Ping,
    "poll": Poll,
    "read_file": ReadFile,
    "shutdown": Shutdown,
}
_OPERATIONS = {kind: operation for operation, kind in _KINDS.items()}


def encode_request(request: Request) -> Message:
    """Return the message for a request.

    >>> encode_request(Kill("AbCdE", 1))
    {'op': 'kill', 'trial': 'AbCdE', 'attempt': 1}
    """
    if isinstance(request, RunSpec):
        return request.message()
    fields = {name: getattr(request, name) for name in request.__slots__}
    if isinstance(request, Start):
        fields["keep"] = request.keep.message()
    found = {name: value for name, value in fields.items() if value is not None}
    return {"op": _OPERATIONS[type(request)], **found}


def decode_request(message: Message) -> Request:
    """Return the request in a message; raise ValueError, TypeError or KeyError if it is invalid.

    >>> decode_request({"op": "kill", "trial": "AbCdE", "attempt": 1})
    Kill(trial='AbCdE', attempt=1, grace=None)
    """
    operation = message.get("op")
    if operation == "configure":
        return RunSpec.of(message)
    if operation not in _KINDS:
        raise ValueError(f"there is no operation {operation!r}")
    kind = _KINDS[operation]
    fields = {name: message[name] for name in kind.__slots__ if name in message}
    if kind is Start:
        fields["keep"] = Keeping.of(message.get("keep"))
    return kind(**fields)
