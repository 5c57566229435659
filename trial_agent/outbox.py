"""The events that wait for the manager: numbered, kept until acknowledged, handed out in bounded batches."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from .events import Event

BATCH_BYTES = 64 * 1024
_EVENT_BYTES = 130  # an event without its value or message, as JSON


class Outbox:
    """A thread-safe queue of events with a cursor; events leave it only when a later poll acknowledges them.

    An event may be *held* for some milliseconds after a start, so that a short trial leaves in one batch;
    its end releases it. `on_events` is called, without any lock held, when events may be taken.

    >>> box = Outbox()
    >>> box.put({"e": "problem", "message": "?"})
    >>> box.take(0)
    ([{'e': 'problem', 'message': '?'}], 1)
    >>> box.take(1)
    ([], 1)
    """

    def __init__(self, on_events: Callable[[], None] | None = None) -> None:
        self.on_events = on_events
        self._changed = threading.Condition(threading.Lock())
        self._events: deque[Event] = deque()
        self._first = 1  # the number of the oldest event kept
        self._sent = 0
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Let events that are not urgent wait for company up to `seconds` from now."""
        self._held_until = time.monotonic() + seconds

    def put(self, event: Event, *, urgent: bool = True) -> None:
        """Add one event; an urgent one releases what was held."""
        self.put_all((event,), urgent=urgent)

    def put_all(self, events: Iterable[Event], *, urgent: bool = True) -> None:
        """Add several events in order."""
        with self._changed:
            self._events.extend(events)
            if urgent:
                self._held_until = 0.0
            released = urgent or self.held_for() <= 0
            if released:
                self._changed.notify_all()
        if released and self.on_events is not None:
            self.on_events()

    def held_for(self) -> float:
        """Return the seconds for which events are still held; 0 when they may leave."""
        return max(0.0, self._held_until - time.monotonic()) if self._held_until else 0.0

    def take(self, after: int) -> tuple[list[Event], int]:
        """Forget the events up to number `after`, return the next batch and the number of its last event."""
        with self._changed:
            self._acknowledge(after)
            if self.held_for() > 0:
                return [], self._first - 1
            batch = self._batch()
            self._sent = self._first - 1 + len(batch)
            return batch, self._sent

    def wait(self, after: int, timeout: float) -> tuple[list[Event], int]:
        """Like `take`, but wait up to `timeout` seconds for an event."""
        deadline = time.monotonic() + timeout
        while True:
            events, cursor = self.take(after)
            remaining = deadline - time.monotonic()
            if events or remaining <= 0:
                return events, cursor
            with self._changed:
                held = self.held_for()
                if held > 0 or not self._events:
                    self._changed.wait(min(remaining, held) if held > 0 else remaining)

    @property
    def last(self) -> int:
        """The number of the event that was put last."""
        with self._changed:
            return self._first - 1 + len(self._events)

    @property
    def confirmed(self) -> int:
        """The number up to which events were acknowledged."""
        return self._first - 1

    @property
    def sent(self) -> int:
        """The number of the last event that was ever handed out."""
        return self._sent

    def __len__(self) -> int:
        return len(self._events)

    def _acknowledge(self, after: int) -> None:
        while self._events and self._first <= after:
            self._events.popleft()
            self._first += 1

    def _batch(self) -> list[Event]:
        batch: list[Event] = []
        size = 0
        for event in self._events:
            text = event.get("value") or event.get("message") or event.get("error") or ""
            size += _EVENT_BYTES + (len(text) if isinstance(text, str) else 0)
            if batch and size > BATCH_BYTES:
                break
            batch.append(event)
        return batch
