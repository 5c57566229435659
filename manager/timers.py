"""When the loop checks the time again, and how long a stopping experiment waits for its trials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from ..executors import TrialExecutor
from ..runner import Event, ExperimentStatus, Tick, TrialRunner, Wait
from .hooks import Hooks

# A trial that still runs so long (s) after its grace is ended with its agent.
_STOP_MARGIN = 2.0
# So long (s) after that it is given up: its agent may be out of reach.
_KILL_MARGIN = 1.0


class ExperimentTimers:
    """The deadlines of an open experiment; each posts events when it comes.

    `guarded` calls its argument, and ends the experiment if that fails.
    """

    def __init__(
        self,
        *,
        runner: TrialRunner,
        executor: TrialExecutor,
        hooks: Hooks,
        clock: Callable[[], float],
        grace: float,
        post: Callable[[Sequence[Event]], None],
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        self._runner = runner
        self._executor = executor
        self._hooks = hooks
        self._clock = clock
        self._patience = grace + _STOP_MARGIN
        self._post = post
        self._guarded = guarded
        self._loop = asyncio.get_running_loop()
        self._due: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._last_deadline: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Set the timer for the next deadline, which a turn may have changed."""
        if self._runner.status is ExperimentStatus.STOPPING:
            # However many events come in, the wait for the last trials is bounded.
            if self._last_deadline is None:
                self._last_deadline = self._loop.call_later(self._patience, self._guarded, self._kill_agents)
            return
        due = self.next_deadline()
        if due == self._due or self._executor.has_virtual_clock:
            return
        self._due = due
        if self._deadline is not None:
            self._deadline.cancel()
        if due is not None:
            self._deadline = self._loop.call_later(max(0.0, due - self._clock()), self._tick)

    def next_deadline(self) -> float | None:
        """Return when the next limit of the runner or of a stopper is due."""
        due, left = self._runner.next_deadline(), self._hooks.time_left()
        if left is None:
            return due
        asked = self._clock() + left
        return asked if due is None else min(due, asked)

    def waits(self) -> Iterator[Wait]:
        """Yield how long a stopping experiment waits for its last trials."""
        if self._last_deadline is not None and self._runner.live:
            left = self._last_deadline.when() - self._loop.time()
            yield Wait(
                what="the last trials to end",
                since=self._clock() + left - self._patience,
                longest=self._patience,
                then="their agents are killed, and they count as ended",
            )

    def cancel(self) -> None:
        """Cancel all timers."""
        for timer in (self._deadline, self._last_deadline):
            if timer is not None:
                timer.cancel()

    def _tick(self) -> None:
        self._due = None
        self._post([Tick(self._clock(), cause="timer: deadline")])

    def _kill_agents(self) -> None:
        """Kill the agents of trials that do not end: they end with them, and what they have reported is read first."""
        self._executor.kill_agents(self._runner.orders())
        self._last_deadline = self._loop.call_later(_KILL_MARGIN, self._guarded, self._give_up_on_trials)

    def _give_up_on_trials(self) -> None:
        """Count trials that do not end as ended, with what they have reported as far as it can be read."""
        events = self._executor.give_up(self._runner.orders(), "did not end when killed", self._clock())
        for event in events:
            event.cause = event.cause or "timer: end of the grace"
        self._post(events)
