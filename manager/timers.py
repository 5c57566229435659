"""When the loop checks the time again, and how long a stopping experiment waits for its trials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from ..executors import TrialExecutor
from ..runner import AttemptEnded, Event, ExperimentStatus, Tick, TrialRunner, Wait
from .hooks import Hooks

# A trial that still runs so long (s) after its grace is given up, and its agent ended.
_STOP_MARGIN = 2.0


class ExperimentTimers:
    """The deadlines of an open experiment; each posts an event when it comes."""

    def __init__(
        self,
        *,
        runner: TrialRunner,
        executor: TrialExecutor,
        hooks: Hooks,
        clock: Callable[[], float],
        grace: float,
        post: Callable[[Sequence[Event]], None],
    ) -> None:
        self._runner = runner
        self._executor = executor
        self._hooks = hooks
        self._clock = clock
        self._patience = grace + _STOP_MARGIN
        self._post = post
        self._loop = asyncio.get_running_loop()
        self._due: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._last_deadline: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Set the timer for the next deadline, which a turn may have changed."""
        if self._runner.status is ExperimentStatus.STOPPING:
            # However many events come in, the wait for the last trials is bounded.
            if self._last_deadline is None:
                self._last_deadline = self._loop.call_later(self._patience, self._give_up_on_trials)
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
                then="they count as ended, and their agents are killed",
            )

    def cancel(self) -> None:
        """Cancel all timers."""
        for timer in (self._deadline, self._last_deadline):
            if timer is not None:
                timer.cancel()

    def _tick(self) -> None:
        self._due = None
        self._post([Tick(self._clock(), cause="timer: deadline")])

    def _give_up_on_trials(self) -> None:
        """Count trials that do not end as ended; their agents are killed."""
        why, cause = "did not end when killed", "timer: end of the grace"
        now, orders = self._clock(), self._runner.orders()
        self._post([AttemptEnded(now, o.trial_id, o.attempt, error=why, cause=cause) for o in orders])
