"""What the manager asks of an agent, one class per request, the replies, and messages on a stream of bytes.

Each trial takes at least two requests. The classes are not frozen, because that is faster. On a byte stream a message
is a 4-byte big-endian length, then that many bytes of JSON, with bytes in base64; Ray sends the same dicts unchanged.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Container, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NotRequired, TypeAlias, TypedDict, TypeVar

import orjson

# The parameters of one trial have up to 64 MiB in a frame of the dispatcher, and quotes are escaped once more.
MAX_LENGTH = 160 * 1024 * 1024
_LENGTH = struct.Struct(">I")

Message: TypeAlias = dict[str, Any]
"""What is sent, by name: plain values, and bytes."""

Reply: TypeAlias = Mapping[str, object]
"""What an agent replies: one of the objects below, or an `error`."""

_T = TypeVar("_T")


class MessageError(Exception):
    """The peer sent something that is not a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How many checkpoints of a trial are kept (None: all), ranked by `recency` or by `score` (their last value).

    `metric` is the name of the score in a reported dict, `mode` says which score is better. `frequency` (in steps; 0:
    never) and `at_end` are for classes.

    >>> Keeping.of({"keep": 3, "rank_by": "score", "mode": "minimize"}).keep
    3
    """

    keep: int | None = 1
    rank_by: str = "recency"
    mode: str = "maximize"
    metric: str = "default"
    frequency: int = 0
    at_end: bool = False

    @classmethod
    def of(cls, message: Message | None) -> Keeping:
        """Read this part of a `start` message; missing fields have the defaults above."""
        return cls(**{name: message[name] for name in cls.__slots__ if name in message}) if message else cls()


_USUAL = Keeping()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How the trials of the experiment are run: a command, or a pickled function (`kind`).

    Numerical libraries start `threads` threads unless the user says otherwise (None: as many as they like).
    `grace` (s) lies between SIGTERM and SIGKILL; `memory_limit` is in bytes; `orphan_timeout` (s) is how long an agent
    and its trial continue without a manager; `reuse_actors` keeps a class's instance for the next trial. `synced`:
    reports and checkpoints are forced to the disk before the manager learns of them. A trial has `processes` in all,
    equally many on each of its `nodes`. `trial_start` is "cold", "warm" or "auto". `function_files` are digests by
    path: a function is pickled, and agents do not see the file that it came from. `keeping` travels with each start,
    not with the rest.
    """

    kind: str
    experiment: str
    folder: str
    command: str = ""
    code_directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    shell: bool = True
    threads: int | None = None
    path: str = ""
    grace: float = 5.0
    memory_limit: int | None = None
    orphan_timeout: float = 60.0
    reuse_actors: bool = False
    synced: bool = False
    processes: int = 1
    nodes: int = 1
    trial_start: str = "cold"
    function_files: Mapping[str, str] = field(default_factory=dict)
    keeping: Keeping = _USUAL

    @property
    def is_function(self) -> bool:
        """Whether trials are calls of a function in the agent's own process."""
        return self.kind == "function"

    def message(self) -> Message:
        """Return the `configure` message that `of` reads.

        >>> RunSpec.of(RunSpec(kind="command", experiment="e", folder="/exp", command="./train.sh").message()).command
        './train.sh'
        """
        run = {name: getattr(self, name) for name in _RUN_FIELDS}
        return {"op": "configure", "experiment": self.experiment, "folder": self.folder, "run": run}

    @classmethod
    def of(cls, message: Message) -> RunSpec:
        """Read a `configure` message; raise ValueError for an unknown kind of trial.

        >>> run = {"kind": "command", "command": "./train.sh"}
        >>> RunSpec.of({"op": "configure", "experiment": "e", "folder": "/exp", "run": run}).command
        './train.sh'
        """
        run = {name: value for name, value in message["run"].items() if value is not None}
        if run["kind"] not in ("command", "function"):
            raise ValueError(f"trials are commands or functions, not {run['kind']!r}")
        values = {name: run[name] for name in _RUN_FIELDS if name in run}
        folder = os.path.abspath(message["folder"])  # trials run elsewhere, and are known by their paths
        return cls(experiment=message["experiment"], folder=folder, **values)


_RUN_FIELDS = tuple(name for name in RunSpec.__slots__ if name not in ("experiment", "folder", "keeping"))


class OngoingAttempt(TypedDict):
    """An attempt that an agent runs; it has no process yet while it waits for its turn."""

    trial: str
    attempt: int
    pid: int | None


class HelloReply(TypedDict):
    """What an agent says of itself; `seen` are the keys of the attempts that it has run or is to run."""

    agent: str
    pid: int
    host: str
    running: list[OngoingAttempt]
    seen: list[tuple[str, int]]


class Batch(TypedDict):
    """The reply to a poll: events as messages, the number of the last one, and on Ray what else went wrong."""

    events: list[Message]
    cursor: int
    errors: NotRequired[list[Reply]]


class FilePart(TypedDict, total=False):
    """A part of a file, in base64 if it came over a stream of bytes, and the file's size; or why it cannot be read."""

    data: bytes | str
    size: int
    error: str


@dataclass
class Hello:
    """Identify yourself: the reply is a `HelloReply`.

    A manager that connects again names the same `session`; one that another manager has replaced is refused.
    """

    token: str = ""
    experiment: str = ""
    session: str = ""
    op: str = "hello"


@dataclass(kw_only=True)
class Start:
    """Run an attempt; `parameters` is the parameter record as JSON text.

    It continues from `checkpoint`, a path in the experiment's folder, with result number `first_sequence`. `mark` tells
    the trial from another one with the same number and id that the manager's store has forgotten. With `again`, the
    attempt may have run before, on an agent that is gone. On several nodes, `node` is the number of this one, and the
    processes meet at `master` ("host:port").
    """

    trial: str
    attempt: int
    sequence_id: int
    parameters: str
    first_sequence: int = 0
    gpus: Sequence[int | str] | None = None
    checkpoint: str | None = None
    budget: float | None = None
    keep: Keeping = _USUAL
    mark: str = ""
    again: bool = False
    node: int = 0
    master: str = ""
    op: str = "start"

    def __post_init__(self) -> None:
        if not isinstance(self.parameters, str):
            raise TypeError("the parameter record is sent as JSON text")


@dataclass
class _End:
    trial: str
    attempt: int
    grace: float | None = None  # seconds; None: the experiment's grace


@dataclass
class Kill(_End):
    """End an attempt, `grace` seconds after asking it to end."""

    op: str = "kill"


@dataclass
class Pause(_End):
    """Let an attempt save a checkpoint, then end it."""

    op: str = "pause"


@dataclass
class Ping:
    """Give a sign of life."""

    op: str = "ping"


@dataclass
class Poll:
    """Forget the events up to `after` and return the next ones, a `Batch`."""

    after: int
    op: str = "poll"

    def __post_init__(self) -> None:
        if not isinstance(self.after, int):
            raise TypeError(f"events are numbered with integers, not with {self.after!r}")


@dataclass
class ReadFile:
    """Return a `FilePart` of the experiment's folder."""

    path: str
    offset: int
    limit: int
    op: str = "read_file"


@dataclass
class Shutdown:
    """Kill what runs and exit."""

    op: str = "shutdown"


Request = RunSpec | Hello | Start | Kill | Pause | Ping | Poll | ReadFile | Shutdown

_KINDS: dict[str, type[Hello | Start | Kill | Pause | Ping | Poll | ReadFile | Shutdown]] = {
    kind.op: kind for kind in (Hello, Start, Kill, Pause, Ping, Poll, ReadFile, Shutdown)
}
# In the order of the fields, which is that of an object's attributes; `op` is always sent.
_DEFAULTS: Mapping[str, Sequence[object]] = {
    op: [MISSING if each.name == "op" else each.default for each in fields(kind)]
    for op, kind in _KINDS.items()
}


def encode_request(request: Request) -> Message:
    """Return the message for a request, without what has its default.

    >>> encode_request(Kill("AbCdE", 1))
    {'trial': 'AbCdE', 'attempt': 1, 'op': 'kill'}
    """
    if isinstance(request, RunSpec):
        return request.message()
    pairs = zip(vars(request).items(), _DEFAULTS[request.op], strict=True)
    return {name: value for (name, value), usual in pairs if value is not usual and value != usual}


def decode_request(message: Message) -> Request:
    """Return the request in a message; raise ValueError, TypeError or KeyError if it is invalid.

    >>> decode_request({"op": "poll", "after": 7})
    Poll(after=7, op='poll')
    """
    if message.get("op") == "configure":
        try:
            return RunSpec.of(message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MessageError(f"{type(error).__name__}: {error}") from error
    if "keep" in message:
        message = {**message, "keep": Keeping.of(message["keep"])}
    try:
        kind = _KINDS[message["op"]]
    except (KeyError, TypeError):
        raise MessageError("there is no such request") from None
    try:
        return from_message(kind, message)
    except TypeError as error:
        raise MessageError(str(error)) from error


def from_message(kind: type[_T], message: Message) -> _T:
    """Return an object of a dataclass from a message with its fields; ignore those that a later version added."""
    try:
        return kind(**message)
    except TypeError:
        names: Container[str] = vars(kind)["__dataclass_fields__"]
        return kind(**{name: value for name, value in message.items() if name in names})


class MessageDecoder:
    """Turns a stream of bytes, split anywhere, back into messages.

    >>> decoder = MessageDecoder()
    >>> wire = encode_message({"op": "poll", "after": 0})
    >>> decoder.feed(wire[:3]), decoder.feed(wire[3:])
    ([], [{'op': 'poll', 'after': 0}])
    """

    def __init__(self, max_length: int = MAX_LENGTH) -> None:
        self._buffer = bytearray()
        self._max_length = max_length

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that `data` completes; raise MessageError if it cannot be part of one."""
        buffer = self._buffer
        buffer += data
        messages: list[Message] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > self._max_length:
                raise MessageError(f"a message of {length} bytes is over the limit of {self._max_length}")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            messages.append(_decode(bytes(buffer[start + _LENGTH.size : end])))
            start = end
        del buffer[:start]
        return messages


def _decode(body: bytes) -> Message:
    try:
        message = from_bytes(body)
    except json.JSONDecodeError as error:
        raise MessageError(f"a message is not JSON ({error}): {body[:80]!r}") from error
    if not isinstance(message, dict):
        raise MessageError(f"a message is not an object: {body[:80]!r}")
    return message


def encode_message(message: Reply) -> bytes:
    """Return the framed bytes of a message.

    >>> encode_message({"op": "poll", "after": 0})
    b'\\x00\\x00\\x00\\x17{"op":"poll","after":0}'
    """
    body = to_bytes(message)
    return _LENGTH.pack(len(body)) + body


def to_bytes(value: Any) -> bytes:
    """Return the JSON of plain values, also of paths and variables that are not UTF-8.

    >>> from_bytes(to_bytes(["caf\\udce9"])) == ["caf\\udce9"]
    True
    """
    try:
        return orjson.dumps(value, default=_bytes_as_text)
    except TypeError:  # orjson takes no half of a surrogate pair
        return json.dumps(value, default=_bytes_as_text).encode()


def from_bytes(body: bytes) -> Any:
    """Return what `to_bytes` was given; raise `json.JSONDecodeError`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\u" not in body:
            raise
        return json.loads(body)


def _bytes_as_text(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} cannot be sent in a message")
