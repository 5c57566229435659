"""Simulates trials, with a virtual clock and a function that returns what a trial would report.

Thousands of trials run at once in one process, and a week passes in a second. Nothing depends on the machine's speed:
the clock advances only when the manager is idle and the dispatcher owes no reply. So a seeded experiment on this
executor is reproducible.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from ..protocol import Parameters, dumps, parameters_of
from ..runner import (
    AttemptEnded,
    AttemptOrder,
    AttemptStarted,
    CheckpointSaved,
    Event,
    Reported,
    Tick,
    Totals,
)
from .trial_executor import Deliver, RunSetup, TrialExecutor


class VirtualClock:
    """A clock that moves only when it is advanced.

    >>> clock = VirtualClock(100.0)
    >>> clock.advance_to(160.0)
    >>> clock()
    160.0
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def __call__(self) -> float:
        """Return the time now, in seconds."""
        return self._now

    def advance_to(self, time: float) -> None:
        """Advance to `time`; the clock never runs backwards."""
        self._now = max(self._now, time)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What one trial would do: report `intermediate` results `step` seconds apart, then `final`; or fail with `error`.

    Without a final result the trial ends as one that never reported. After every `checkpoint_every` results it saves a
    checkpoint, from which its next attempt continues. `losses` are the seconds after which the agents of its first
    attempts are lost.
    """

    final: Any = None
    intermediate: Sequence[Any] = ()
    _: KW_ONLY
    step: float = 1.0
    error: str | None = None
    checkpoint_every: int = 0
    losses: Sequence[float] = ()

    @property
    def duration(self) -> float:
        """Seconds from start to end, without an interruption."""
        return self.duration_from(0)

    def duration_from(self, sequence: int) -> float:
        """Return the seconds that an attempt takes from result number `sequence` on."""
        return self.step * max(1, len(self.intermediate) - sequence)


@dataclass(slots=True)
class _Live:
    """A running attempt; after a stop or a pause only the events in `ending` count."""

    order: AttemptOrder
    start: float
    run: SimulatedRun
    ending: tuple[Event, ...] = ()

    def results(self) -> Iterator[tuple[int, float]]:
        """Yield the number of each intermediate result, and the time of its report."""
        first = self.order.first_sequence
        for sequence in range(first, len(self.run.intermediate)):
            yield sequence, self.start + self.run.step * (sequence + 1 - first)

    def checkpoint(self, time: float, sequence: int) -> CheckpointSaved:
        trial, attempt = self.order.trial_id, self.order.attempt
        return CheckpointSaved(time, trial, attempt, name=f"{attempt}-{sequence}", sequence=sequence)


class SimulatedTrialExecutor(TrialExecutor):
    """A `TrialExecutor` that simulates trials.

    `simulate` maps a trial's parameters to what the trial would do; `totals` is what the simulated machine has.
    """

    has_virtual_clock = True

    def __init__(
        self,
        simulate: Callable[[Parameters], SimulatedRun],
        clock: VirtualClock,
        totals: Totals | None = None,
    ) -> None:
        self._simulate = simulate
        self._clock = clock
        self._totals = totals or Totals()
        self._deliver: Deliver | None = None
        self._live: dict[tuple[str, int], _Live] = {}
        self._ended: set[tuple[str, int]] = set()
        # Simultaneous events are in the order of their trials, whenever they were planned.
        self._agenda: list[tuple[float, int, int, Event]] = []
        self._order_of_entry = itertools.count()

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Remember where to deliver events."""
        self._deliver = deliver
        return self._totals

    async def attach(self, orders: Sequence[AttemptOrder]) -> None:
        """Simulate the running attempts again from their start; what is known already is reported again."""
        for order in orders:
            self.start_trial(order)

    def start_trial(self, order: AttemptOrder) -> None:
        """Put all events of the attempt on the agenda."""
        key = order.trial_id, order.attempt
        if key in self._live or key in self._ended:
            return
        start = order.start_time if order.start_time is not None else self._clock()
        live = _Live(order, start, self._simulate(parameters_of(order.record)))
        self._live[key] = live
        self._plan(live, AttemptStarted(start, *key))
        run, losses = live.run, live.run.losses
        end = start + run.duration_from(order.first_sequence)
        lost = start + losses[order.attempt - 1] if order.attempt <= len(losses) else end
        self._plan_reports(live, min(end, lost))
        if lost < end:
            self._plan(live, AttemptEnded(lost, *key, error="its simulated agent is gone", lost=True))
            return
        if run.final is not None and run.error is None:
            self._plan(live, Reported(end, *key, kind="final", sequence=0, value=dumps(run.final)))
        self._plan(live, AttemptEnded(end, *key, exit_code=1 if run.error else 0, error=run.error))

    def stop_trial(self, trial_id: str, attempt: int) -> None:
        """End an attempt at once."""
        live = self._live.get((trial_id, attempt))
        if live is not None and (not live.ending or len(live.ending) > 1):
            now = self._clock()
            self._end_by(live, AttemptEnded(now, trial_id, attempt, signal=15))

    def pause_trial(self, trial_id: str, attempt: int) -> None:
        """End an attempt at once, with a checkpoint after its last report."""
        live = self._live.get((trial_id, attempt))
        if live is None or live.ending:
            return
        now = self._clock()
        reported = [sequence for sequence, time in live.results() if time <= now]
        sequence = reported[-1] + 1 if reported else live.order.first_sequence
        ended = AttemptEnded(now, trial_id, attempt, exit_code=0, paused=True)
        self._end_by(live, live.checkpoint(now, sequence), ended)

    def _end_by(self, live: _Live, *events: Event) -> None:
        live.ending = events
        for event in events:
            self._plan(live, event)

    def acknowledge(self) -> None:
        """Do nothing: delivered events are not kept."""

    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        """Return nothing: a simulated trial writes no files."""
        return b""

    async def close(self) -> None:
        """Forget everything."""
        self._live.clear()
        self._agenda.clear()

    def on_idle(self, next_deadline: float | None) -> None:
        """Advance the clock to the next event or deadline, and deliver it."""
        while self._agenda and not self._counts(self._agenda[0][-1]):
            heapq.heappop(self._agenda)
        due = self._agenda[0][0] if self._agenda else None
        if next_deadline is not None and (due is None or next_deadline < due):
            self._clock.advance_to(next_deadline)
            self._emit([Tick(self._clock(), cause="timer: deadline")])
        elif due is not None:
            self._clock.advance_to(due)
            self._emit(list(self._due_now(due)))

    def _due_now(self, due: float) -> Iterator[Event]:
        """Yield all events that are due."""
        while self._agenda and self._agenda[0][0] <= due:
            event = heapq.heappop(self._agenda)[-1]
            if self._counts(event):
                self._note_end(event)
                yield event

    def _plan_reports(self, live: _Live, end: float) -> None:
        order, run = live.order, live.run
        for sequence, time in live.results():
            if time > end:
                return
            value = dumps(run.intermediate[sequence])
            key = time, order.trial_id, order.attempt
            self._plan(live, Reported(*key, kind="intermediate", sequence=sequence, value=value))
            if run.checkpoint_every and (sequence + 1) % run.checkpoint_every == 0:
                self._plan(live, live.checkpoint(time, sequence + 1))

    def _plan(self, live: _Live, event: Event) -> None:
        place = event.time, live.order.sequence_id, next(self._order_of_entry)
        heapq.heappush(self._agenda, (*place, event))

    def _counts(self, event: Any) -> bool:
        """Return whether an event counts: its attempt runs, and after a stop or a pause it is one of its end."""
        live = self._live.get((event.trial_id, event.attempt))
        return live is not None and (not live.ending or any(event is last for last in live.ending))

    def _note_end(self, event: Event) -> None:
        if isinstance(event, AttemptEnded):
            key = event.trial_id, event.attempt
            self._ended.add(key)
            self._live.pop(key, None)

    def _emit(self, events: list[Event]) -> None:
        if self._deliver is not None:
            self._deliver(events)
