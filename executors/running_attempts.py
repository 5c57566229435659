"""The attempts that run, and what their agents say about them, or have left in a spool, as events of the runner."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..runner import (
    AttemptEnded,
    AttemptOrder,
    AttemptStarted,
    BadReport,
    CheckpointSaved,
    Event,
    Reported,
    StartRefused,
)
from ..trial_agent import Ended, Report, Saved, SpoolProblem, Started, read_spool, spool_name
from ..trial_agent import Event as AgentEvent
from .trial_executor import RunSetup

_log = logging.getLogger(__name__)

Attempt = tuple[str, int]
"""The trial's id and the number of the attempt."""


class RunningAttempts:
    """The orders of the attempts that were started and have not ended; an event of any other attempt comes too late.

    `setup` returns what the executor was opened with. `on_end` is called when an attempt has ended, and `lose` with the
    agent of an attempt whose results are not in the folder.
    """

    def __init__(
        self,
        setup: Callable[[], RunSetup],
        on_end: Callable[[AttemptOrder], None],
        lose: Callable[[str], None],
    ) -> None:
        self.orders: dict[Attempt, AttemptOrder] = {}
        self.busy: Counter[str] = Counter()  # how many of `orders` each agent has
        self._earliest: dict[Attempt, float] = {}  # when they were started; it has the keys of `orders`
        self._setup = setup
        self._on_end = on_end
        self._lose = lose
        self._told: set[str] = set()

    def add(self, order: AttemptOrder, earliest: float) -> None:
        """Note an attempt that is started; none of its events is dated before `earliest`."""
        key = order.trial_id, order.attempt
        self.orders[key], self._earliest[key] = order, earliest
        self.busy[order.agent] += 1

    def forget(self, key: Attempt) -> None:
        """Note that an attempt has ended."""
        order = self.orders.pop(key, None)
        if order is not None:
            del self._earliest[key]
            self.busy[order.agent] -= 1
            self._on_end(order)

    def of(self, agent: str) -> list[AttemptOrder]:
        """Return the orders of an agent, in the order in which it carries them out."""
        return [order for order in self.orders.values() if order.agent == agent]

    def first_start(self, agent: str) -> float | None:
        """Return when the first of an agent's attempts was started; None if it has none."""
        return min(
            (self._earliest[key] for key, order in self.orders.items() if order.agent == agent), default=None
        )

    def events(self, agent: str, events: Sequence[AgentEvent], source: str, last: int) -> Iterator[Event]:
        """Translate the events of `agent` into the runner's; `last` is the number of the last one in its source.

        An agent's clock may be wrong or be set: no event is dated before the start of its attempt, or in the future.
        """
        now = self._setup().clock()
        for number, event in enumerate(events, last - len(events) + 1):
            key = event.trial, event.attempt
            order = self.orders.get(key)
            if order is None or order.agent != agent:
                continue  # ended already: an agent repeats it after a restart, or was given up
            if event.mark and event.mark != order.mark:
                continue  # of a trial that the store has forgotten
            if event.e == "forgotten":
                yield from self._spooled(order, self.left(order))
                if key in self.orders:
                    self._lose(agent)  # what it did is not in the folder, an older copy perhaps
                continue
            if event.e == "started" and event.note:
                self._tell(event.note)
            translated = _runner_event(event, now, self._earliest[key])
            translated.cause = f"{source} #{number}"
            if event.e == "ended":
                self.forget(key)
            yield translated

    def results(self, order: AttemptOrder) -> Iterator[Event]:
        """Translate the spool of an attempt but for its end, which the agent reports, or that it has forgotten it."""
        return self._spooled(order, [event for event in self.left(order) if event.e != "ended"])

    def last_events(self, orders: Sequence[AttemptOrder], reason: str) -> list[Event]:
        """Return what the attempts of an agent that is gone left in their spools, and their ends.

        It carried them out in this order: the first one without an end is lost, and those after it never began. They
        are given back before anything else happens, the last one first, so that they wait in their order.
        """
        events: list[Event] = []
        given_back: list[Event] = []
        is_over = False
        for order in orders:
            left = self.left(order)
            if is_over and not left:
                given_back.insert(0, self._given_back(order, reason))
                continue
            last_events = self._ended_at_last(order, left, reason)
            is_over = is_over or any(isinstance(event, AttemptEnded) and event.lost for event in last_events)
            events += last_events
        return given_back + events

    def left(self, order: AttemptOrder) -> list[AgentEvent]:
        """Return the events that the spool of an attempt holds."""
        setup = self._setup()
        path = spool_path(setup, order)
        # A function's checkpoint is forced to the disk before its name is written; a script's is not.
        is_unsure = setup.run.synced and not setup.run.is_function
        try:
            events = read_spool(
                path,
                order.trial_id,
                order.attempt,
                order.first_sequence,
                mark=order.mark,
                metric=setup.run.keeping.metric,
                checkpoints=path.parent / "checkpoints" if is_unsure else None,
            )
        except FileNotFoundError:
            return []  # nothing was ever reported, or the node with the spool is gone
        except OSError as error:
            _log.warning("the reports of trial %s cannot be read: %s", order.trial_id, error)
            return []
        # On several nodes the first one's end says nothing about the others.
        return events if setup.run.nodes == 1 else [event for event in events if event.e != "ended"]

    def _spooled(self, order: AttemptOrder, left: Sequence[AgentEvent]) -> Iterator[Event]:
        source = f"spool {spool_path(self._setup(), order).name}"
        return self.events(order.agent, left, source, len(left))

    def _given_back(self, order: AttemptOrder, reason: str) -> Event:
        key = order.trial_id, order.attempt
        self.forget(key)
        return StartRefused(self._setup().clock(), *key, reason=reason, cause=f"agent {order.agent} lost")

    def _ended_at_last(self, order: AttemptOrder, left: Sequence[AgentEvent], reason: str) -> list[Event]:
        """Return what an attempt left; if its end is not among it, the attempt is lost."""
        key = order.trial_id, order.attempt
        events = list(self._spooled(order, left))
        if not any(isinstance(event, AttemptEnded) for event in events):
            cause = f"agent {order.agent} lost"
            events.append(AttemptEnded(self._setup().clock(), *key, error=reason, lost=True, cause=cause))
            self.forget(key)
        return events

    def _tell(self, note: str) -> None:
        """Log once why trials start cold: a warning if the user asked for warm starts."""
        if note not in self._told:
            self._told.add(note)
            level = logging.WARNING if self._setup().run.trial_start == "warm" else logging.INFO
            _log.log(level, "not all trials start warm: %s", note)


def spool_path(setup: RunSetup, order: AttemptOrder, node: int = 0) -> Path:
    """Return the file with the reports of an attempt: its own, or that of its agent for function trials.

    The processes on the other nodes of a trial have one of their own.
    """
    if setup.run.is_function:
        return setup.folder / "agents" / f"{order.agent}.jsonl"
    return setup.folder / "trials" / str(order.sequence_id) / spool_name(order.attempt, order.mark, node)


def _runner_event(
    event: Started | Report | Saved | SpoolProblem | Ended, now: float, earliest: float
) -> Event:
    """Return an agent's event as one of the runner's, dated between `earliest` and `now`."""
    time = now if event.e == "problem" else event.time
    if not earliest <= time <= now:
        time = min(now, max(time, earliest))
    trial, attempt = event.trial, event.attempt
    if event.e == "report":  # thousands a second
        return Reported(time, trial, attempt, event.kind, event.sequence, event.value)
    if event.e == "started":
        return AttemptStarted(time, trial, attempt, event.pid)
    if event.e == "checkpoint":
        name, number = event.name, event.sequence
        return CheckpointSaved(time, trial, attempt, name=name, sequence=number, value=event.value)
    if event.e == "problem":
        return BadReport(time, trial, attempt, event.message, infra=event.infra)
    return AttemptEnded(
        time,
        trial,
        attempt,
        exit_code=event.exit_code,
        signal=event.signal,
        error=event.error,
        paused=event.paused,
        out_of_memory=event.out_of_memory,
        infra=event.infra,
        killed=event.killed,
        exported=event.exported,
        unasked=event.unasked,
        left_running=event.left_running,
        code=event.code,
        loaded=event.loaded,
    )
