"""Runs trials that are only imagined: a virtual clock and a function that says what a trial would report.

Thousands of trials run at once in one process, a week passes in a second, and nothing depends on the machine's
timing: the clock advances only when the manager has nothing to do and the dispatcher has answered everything. So a
seeded experiment on this executor is the same each time.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..protocol import dumps, loads
from .events import AttemptEnded, AttemptStarted, Event, Reported, Tick
from .executor import AttemptOrder, Deliver, RunSetup, TrialExecutor
from .ledger import Totals

__all__ = ["SimulatedRun", "SimulatedTrialExecutor", "VirtualClock"]


class VirtualClock:
    """A clock that stands still until it is told to go on.

    >>> clock = VirtualClock(100.0)
    >>> clock.advance_to(160.0)
    >>> clock()
    160.0
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        """The time now, in seconds."""
        return self._now

    def advance_to(self, time: float) -> None:
        """Let time pass; it never runs backwards."""
        self._now = max(self._now, time)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What one trial would do: report `intermediate` results `step` seconds apart, then `final`; or fail with `error`.

    Without a final result the trial ends as one that never reported.
    """

    final: Any = None
    intermediate: Sequence[Any] = ()
    step: float = 1.0
    error: str | None = None

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.step * max(1, len(self.intermediate))


@dataclass(slots=True)
class _Live:
    order: AttemptOrder
    stopped: bool = field(default=False)


class SimulatedTrialExecutor(TrialExecutor):
    """A `TrialExecutor` in imagination.

    `simulate` maps a trial's parameters to what it would do; `totals` is what the imagined machine has.
    """

    has_virtual_clock = True

    def __init__(
        self,
        simulate: Callable[[Mapping[str, Any]], SimulatedRun],
        clock: VirtualClock,
        totals: Totals | None = None,
    ) -> None:
        self._simulate = simulate
        self._clock = clock
        self._totals = totals or Totals()
        self._deliver: Deliver | None = None
        self._live: dict[tuple[str, int], _Live] = {}
        self._ended: set[tuple[str, int]] = set()
        self._agenda: list[tuple[float, int, Event]] = []
        self._order_of_entry = itertools.count()

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Take the manager's ear."""
        self._deliver = deliver
        return self._totals

    async def attach(self, orders: Sequence[AttemptOrder]) -> None:
        """Imagine the running attempts once more from their start; what is known already is told again."""
        for order in orders:
            self.start_trial(order)

    def start_trial(self, order: AttemptOrder) -> None:
        """Put all that the attempt will do on the agenda."""
        key = order.trial_id, order.attempt
        if key in self._live or key in self._ended:
            return
        self._live[key] = _Live(order)
        start = order.start_time if order.start_time is not None else self._clock()
        run = self._simulate(loads(order.parameters)["parameters"])
        self._plan(start, AttemptStarted(start, *key))
        self._plan_reports(key, start, run, order.first_sequence)
        end = start + run.duration
        self._plan(end, AttemptEnded(end, *key, exit_code=1 if run.error else 0, error=run.error))

    def stop_trial(self, trial_id: str, attempt: int) -> None:
        """End an attempt at once."""
        live = self._live.get((trial_id, attempt))
        if live is not None and not live.stopped:
            live.stopped = True
            now = self._clock()
            self._plan(now, AttemptEnded(now, trial_id, attempt, signal=15))

    def acknowledge(self) -> None:
        """Nothing is kept that could be forgotten."""

    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        """An imagined trial writes no files."""
        return b""

    async def close(self) -> None:
        """Forget everything."""
        self._live.clear()
        self._agenda.clear()

    def on_idle(self, next_deadline: float | None) -> None:
        """Let time pass to the next thing that happens, and deliver it."""
        while self._agenda and not self._counts(self._agenda[0][2]):
            heapq.heappop(self._agenda)
        due = self._agenda[0][0] if self._agenda else None
        if next_deadline is not None and (due is None or next_deadline < due):
            self._clock.advance_to(next_deadline)
            self._say([Tick(self._clock())])
        elif due is not None:
            self._clock.advance_to(due)
            self._say(list(self._due_now(due)))

    def _due_now(self, due: float) -> Iterator[Event]:
        """What happens at the same moment is told together."""
        while self._agenda and self._agenda[0][0] <= due:
            event = heapq.heappop(self._agenda)[2]
            if self._counts(event):
                self._note_end(event)
                yield event

    def _plan_reports(self, key: tuple[str, int], start: float, run: SimulatedRun, first: int) -> None:
        for number, value in enumerate(run.intermediate):
            time = start + run.step * (number + 1)
            self._plan(time, Reported(time, *key, "intermediate", first + number, dumps(value)))
        if run.final is not None and run.error is None:
            end = start + run.duration
            self._plan(end, Reported(end, *key, "final", 0, dumps(run.final)))

    def _plan(self, time: float, event: Event) -> None:
        heapq.heappush(self._agenda, (time, next(self._order_of_entry), event))

    def _counts(self, event: Any) -> bool:
        """Does anybody still wait for this? After a stop, only for the end that the stop brought."""
        live = self._live.get((event.trial_id, event.attempt))
        return live is not None and (not live.stopped or getattr(event, "signal", None) is not None)

    def _note_end(self, event: Event) -> None:
        if isinstance(event, AttemptEnded):
            key = event.trial_id, event.attempt
            self._ended.add(key)
            self._live.pop(key, None)

    def _say(self, events: list[Event]) -> None:
        if self._deliver is not None:
            self._deliver(events)
