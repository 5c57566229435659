"""What an agent reports to the manager: six kinds of event, and the outbox in which they wait until it has them.

Each kind has the fields of its JSON message, in their order. `e` names the kind; times are seconds since the epoch;
`mark` distinguishes the trial from a forgotten one with the same id. An attempt may report thousands of results a
second, so the classes are neither frozen nor slotted: the fields of an event are its message without being copied.

Reports are in a spool before they come here, so memory need not hold them all: when the outbox is full, the reader of
a command trial's spool pauses, and a function waits in its next report.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from operator import itemgetter
from typing import Literal, TypedDict

from ..sdk import CodeFacts
from .messages import Message, MessageError

ReportKind = Literal["intermediate", "final"]

BATCH_BYTES = 64 * 1024
MAX_BYTES = 16 * 1024 * 1024  # about 120,000 small reports, which take three times as much as Python objects
_EVENT_BYTES = 130  # an event without its value or message, as JSON


class AttemptFields(TypedDict):
    """The fields by which every event names its attempt."""

    trial: str
    attempt: int
    mark: str


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
class SpoolProblem:
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
    With `unasked`, it reported through the functions of this package, and nothing ever read its parameters. With
    `left_running`, its command ended before programs that it had started, which were then killed. `code` is the digest
    of what its processes have `loaded`; an agent sends that once for all trials that it runs in its own process.
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
    left_running: bool = field(default=False, repr=False)
    code: str | None = field(default=None, repr=False)
    loaded: CodeFacts | None = field(default=None, repr=False)
    mark: str = ""

    def __post_init__(self) -> None:
        if not self.infra:
            del self.infra  # as above
        if not self.unasked:
            del self.unasked
        if not self.left_running:
            del self.left_running
        if self.code is None:
            del self.code
        if self.loaded is None:
            del self.loaded
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


Event = Started | Report | Saved | SpoolProblem | Ended | Forgotten

# Each kind, and what raises KeyError for a message without one of its fields that have no default.
_KINDS: dict[str, tuple[type[Event], Callable[[Message], object]]] = {
    kind.e: (kind, itemgetter(*(each.name for each in fields(kind) if each.default is MISSING)))
    for kind in (Started, Report, Saved, SpoolProblem, Ended, Forgotten)
}
_WHO = frozenset({"e", "trial", "attempt", "mark"})
# In a spool only if they apply.
_RARE = frozenset({"out_of_memory", "infra", "exported", "unasked", "left_running", "code", "loaded"})


def encode_event(event: Event) -> Message:
    """Return the message of an event, which shares its fields.

    >>> encode_event(Report("AbCdE", 1, "final", 0, "0.9", 12.5))["value"]
    '0.9'
    """
    return vars(event)


def decode_events(messages: Iterable[Message]) -> list[Event]:
    """Return the events in messages; raise `MessageError` if one is invalid.

    >>> decode_events([{"e": "problem", "trial": "AbCdE", "attempt": 1, "message": "line 3 is not JSON"}])
    [SpoolProblem(trial='AbCdE', attempt=1, message='line 3 is not JSON', mark='')]
    """
    events: list[Event] = []
    try:
        for message in messages:
            kind, needed = _KINDS[message["e"]]
            needed(message)
            event = object.__new__(kind)
            event.__dict__ = message  # a default is an attribute of the class
            events.append(event)
    except (KeyError, TypeError) as error:
        raise MessageError(f"an agent's event is invalid: {type(error).__name__}: {error}") from error
    return events


def _sendable(text: str) -> str:
    """Return a text that UTF-8 can encode: users' file names and messages may hold lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Outbox:
    """A thread-safe queue of events with a cursor; events leave it only when a later poll acknowledges them.

    An event may be *held* for some milliseconds after a start, so that a short trial's events leave in one batch;
    the trial's end releases it. `on_events` is called, without any lock held, when events may be taken; `on_room` when
    acknowledged events have made room in a full outbox. Full means that `max_bytes` of events are kept.

    >>> box = Outbox()
    >>> _ = box.put(SpoolProblem(trial="AbCdE", attempt=1, message="?"))
    >>> box.take(0)
    ([SpoolProblem(trial='AbCdE', attempt=1, message='?', mark='')], 1)
    >>> box.take(1)
    ([], 1)
    """

    def __init__(self, on_events: Callable[[], None] | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.on_events = on_events
        self.on_room: Callable[[], None] = lambda: None
        self._max_bytes = max_bytes
        # Reentrant: a signal handler may close the outbox while the same thread holds the lock.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._events: deque[tuple[Event, int]] = deque()  # with their sizes
        self._bytes = 0
        self._closed = False
        self._first = 1  # the number of the oldest event kept
        self._sent = 0
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Hold events that are not urgent for up to `seconds`, so that they leave together."""
        with self._changed:
            self._held_until = time.monotonic() + seconds
            self._changed.notify_all()  # a thread that waits already must learn when the hold ends

    def hold_on(self, seconds: float) -> None:
        """Hold events for up to `seconds` from now, if any hold is left."""
        if self.is_holding:
            self.hold(seconds)

    def put(self, event: Event, *, urgent: bool = True) -> int:
        """Add one event and return its number; an urgent one releases what was held."""
        return self.put_all((event,), urgent=urgent)

    def put_all(self, events: Iterable[Event], *, urgent: bool = True) -> int:
        """Add several events in order and return the number of the last one."""
        last = self.add(events, urgent=urgent)
        self.announce()
        return last

    def add(self, events: Iterable[Event], *, urgent: bool = True) -> int:
        """Add events as `put_all` does; the caller will `announce` them, when it holds no lock of its own.

        A closed, full outbox takes none: they stay in the spool.
        """
        with self._lock:
            if not (self._closed and self.is_full):
                for event in events:
                    size = _size_of(event)
                    self._events.append((event, size))
                    self._bytes += size
            if urgent:
                self._held_until = 0.0
            if self.held_for() <= 0:
                self._changed.notify_all()
            return self._first - 1 + len(self._events)

    def announce(self) -> None:
        """Let the events leave, unless they are held."""
        if self.on_events is not None and self.held_for() <= 0:
            self.on_events()

    def release(self) -> bool:
        """End a hold whose time is over; return whether there was one."""
        with self._lock:
            if not self.is_holding or self.held_for() > 0:
                return False
            self._held_until = 0.0
            return True

    @property
    def is_holding(self) -> bool:
        """Whether a hold has not ended yet."""
        return self._held_until > 0.0

    def held_for(self) -> float:
        """Return the seconds for which events are still held; 0 when they may leave."""
        return max(0.0, self._held_until - time.monotonic()) if self._held_until else 0.0

    def take(self, after: int) -> tuple[list[Event], int]:
        """Forget the events up to number `after`; return the next batch and the number of its last event."""
        with self._changed:
            self._acknowledge(after)
            if self.held_for() > 0:
                return [], self._first - 1
            batch = self._batch()
            self._sent = self._first - 1 + len(batch)
            return batch, self._sent

    def wait(self, after: int, timeout: float) -> tuple[list[Event], int]:
        """Do as `take` does, but wait up to `timeout` seconds for an event."""
        events, cursor = self.take(after)
        deadline = time.monotonic() + timeout if timeout > 0 else 0.0
        while not events and (remaining := deadline - time.monotonic()) > 0:
            with self._changed:
                held = self.held_for()
                if held > 0 or not self._events:
                    self._changed.wait(min(remaining, held) if held > 0 else remaining)
            events, cursor = self.take(after)
        return events, cursor

    @property
    def is_full(self) -> bool:
        """Whether callers that can wait should add no events now."""
        return self._bytes >= self._max_bytes

    def wait_for_room(self, given_up: Callable[[], bool] = lambda: False) -> None:
        """Wait until the outbox is not full, is closed, or `given_up()` is true; `stir` makes it check again."""
        with self._changed:
            self._changed.wait_for(lambda: not self.is_full or self._closed or given_up())

    def stir(self) -> None:
        """Let every waiting thread check its condition again."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """End every wait for room: the agent is leaving."""
        self._closed = True
        self.stir()

    @property
    def last(self) -> int:
        """The number of the last event added."""
        with self._lock:
            return self._first - 1 + len(self._events)

    @property
    def confirmed(self) -> int:
        """The number up to which events are acknowledged."""
        return self._first - 1

    @property
    def sent(self) -> int:
        """The number of the last event given out."""
        return self._sent

    def __len__(self) -> int:
        return len(self._events)

    def _acknowledge(self, after: int) -> None:
        was_full = self.is_full
        count = min(after + 1 - self._first, len(self._events))
        for _ in range(count):
            self._bytes -= self._events.popleft()[1]
        self._first += max(0, count)
        if was_full and not self.is_full:
            self._changed.notify_all()
            self.on_room()

    def _batch(self) -> list[Event]:
        batch: list[Event] = []
        total = 0
        for event, size in self._events:
            total += size
            if batch and total > BATCH_BYTES:
                break
            batch.append(event)
        return batch


def _size_of(event: Event) -> int:
    """Return the approximate length of an event as JSON."""
    if isinstance(event, Report):
        return _EVENT_BYTES + len(event.value)
    if isinstance(event, SpoolProblem):
        return _EVENT_BYTES + len(event.message)
    return _EVENT_BYTES + (len(event.error or "") if isinstance(event, Ended) else 0)
