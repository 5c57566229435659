"""The changes of an experiment since a cursor: one watcher for all readers.

The store keeps no journal of changes. The watcher compares a few columns of all trials with what it saw before, at most
five times a second for any number of readers, and numbers the differences. It holds about 200 bytes per trial.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .database import Database

_PERIOD = 0.2
# Looking costs at most a tenth of the time, however many trials there are.
_COST = 10.0
_MOST_EVENTS = 50_000
_TRIALS = "SELECT sequence_id, trial_id, status, attempt, next_sequence, finals FROM trials"


class _Facts(NamedTuple):
    """What is compared of a trial; `end` is the number of its next intermediate result."""

    trial_id: str
    status: str
    attempt: int
    end: int
    finals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentMoved:
    """The status of the experiment has changed, or the reason for it."""

    n: int
    time: float  # when it was seen
    kind: Literal["experiment"] = "experiment"
    status: str
    reason: str

    @property
    def sequence_id(self) -> None:
        """The trial that it is about: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialMoved:
    """A trial is new, or its status or attempt has changed."""

    n: int
    time: float
    kind: Literal["trial"] = "trial"
    sequence_id: int
    trial_id: str
    status: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsArrived:
    """Intermediate results `begin` to `end - 1` are new; earlier ones with these numbers no longer count."""

    n: int
    time: float
    kind: Literal["results"] = "results"
    sequence_id: int
    begin: int
    end: int


FeedEvent: TypeAlias = ExperimentMoved | TrialMoved | ResultsArrived


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events since a cursor, and the cursor to ask with next.

    `reset` says that the cursor was too old or of another server: the client must read everything again; events follow
    from here.
    """

    cursor: str
    events: list[FeedEvent] = field(default_factory=list["FeedEvent"])
    reset: bool = False


class Feed:
    """Finds and numbers the changes of one experiment; thread-safe. `clock` gives seconds, only for the period."""

    def __init__(self, db: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._db = db
        self._clock = clock
        self._lock = threading.Lock()
        self._name = secrets.token_hex(4)
        self._events: deque[FeedEvent] = deque(maxlen=_MOST_EVENTS)
        self._count = 0
        self._known: dict[int, _Facts] = {}
        self._status: tuple[str, str] | None = None
        self._looked: float | None = None
        self._period = _PERIOD
        self._version: int | None = None

    def since(self, cursor: str | None = None, limit: int = 1000) -> EventPage:
        """Return the events after `cursor`, at most `limit`; without a cursor, no events and the current cursor."""
        with self._lock:
            self._look()
            number = self._number(cursor)
            if number is None:
                return EventPage(self._cursor(self._count), reset=cursor is not None)
            first = self._count - len(self._events)
            found = [
                self._events[at]
                for at in range(number - first, min(number - first + limit, len(self._events)))
            ]
            return EventPage(self._cursor(number + len(found)), found)

    def _cursor(self, number: int) -> str:
        return f"{self._name}.{number}"

    def _number(self, cursor: str | None) -> int | None:
        """Return the number of the last event that the holder of a cursor has; None if it is too old to know."""
        name, _, number = (cursor or "").partition(".")
        if name != self._name or not number.isdecimal() or len(number) > 18:
            return None
        return int(number) if self._count - len(self._events) <= int(number) <= self._count else None

    def _look(self) -> None:
        now = self._clock()
        if self._looked is not None and now - self._looked < self._period:
            return
        self._looked = now
        version = self._db.version()
        if version == self._version:
            return
        is_first = self._version is None
        status = self._db.row("SELECT status, reason FROM experiment")
        trials = self._db.rows(_TRIALS)
        self._version = version
        if status is not None and status != self._status:
            self._status = (status[0], status[1])
            if not is_first:
                self._add(ExperimentMoved, status=status[0], reason=status[1])
        for sequence_id, *stored in trials:
            self._compare(sequence_id, _Facts(*stored), quietly=is_first)
        self._period = max(_PERIOD, _COST * (self._clock() - now))

    def _compare(self, sequence_id: int, facts: _Facts, *, quietly: bool) -> None:
        before = self._known.get(sequence_id)
        if facts == before:
            return
        self._known[sequence_id] = facts
        if quietly:
            return
        begin = 0 if before is None else before.end
        is_retried = before is not None and facts.attempt != before.attempt
        if facts.end != begin or is_retried:
            begin = self._first_of(sequence_id, begin) if is_retried else min(begin, facts.end)
            self._add(ResultsArrived, sequence_id=sequence_id, begin=begin, end=facts.end)
        if before is None or facts != before._replace(end=facts.end):
            trial_id, status, attempt, *_ = facts
            self._add(TrialMoved, sequence_id=sequence_id, trial_id=trial_id, status=status, attempt=attempt)

    def _first_of(self, sequence_id: int, known: int) -> int:
        """Return the first result of the trial's current attempt, or the one after the last known one."""
        row = self._db.row("SELECT first_sequence FROM trials WHERE sequence_id = ?", (sequence_id,))
        return known if row is None else min(known, row[0])

    def _add(self, kind: Callable[..., FeedEvent], **details: str | int) -> None:
        self._count += 1
        self._events.append(kind(n=self._count, time=time.time(), **details))
