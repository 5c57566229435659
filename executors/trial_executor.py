"""The contract between the manager and whatever runs the trials.

An executor starts and stops attempts somewhere and delivers what happens to them as events. It decides nothing:
which trial runs, on which slot and with which devices is the runner's decision, committed before the executor
receives it. It must keep three promises, which `tests/executors/test_trial_executor.py` checks for every executor:

* `start_trial` is idempotent on (trial, attempt), and so are `stop_trial` and `pause_trial`;
* of one attempt, `AttemptEnded` is delivered exactly once and after every report of that attempt;
* a report may be delivered more than once (after a restart, or from the spool of a lost agent), always under the same
  sequence number; no agent forgets it until `confirm` has said that it is committed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..runner import AttemptEnded, AttemptOrder, Event, Request, Totals, Wait
from ..trial_agent import RunSpec

Deliver = Callable[[Sequence[Event]], None]
Cursors = Mapping[Any, int]
"""How far each agent's events have been delivered; only the executor that returned them reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """What all attempts of an experiment share.

    `run` says what a trial is; `request` is what one trial takes; `clock` gives seconds since the epoch. An agent that
    gives no sign of life for `agent_timeout` seconds is given up. Without `may_start` what runs is ended, and nothing
    is started.
    """

    experiment_id: str
    folder: Path
    token: str
    run: RunSpec
    concurrency: int
    clock: Callable[[], float]
    request: Request = field(default_factory=Request)
    agent_timeout: float = 10.0
    may_start: bool = True


class TrialExecutor(ABC):
    """Runs attempts somewhere; all its methods are called on the manager's event loop."""

    has_virtual_clock = False

    @abstractmethod
    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Prepare to run attempts; return the resources that trials can get.

        `deliver` must be called on the event loop's thread. Raises `ExecutorError` when nothing can ever run here.
        """

    @abstractmethod
    async def attach(self, orders: Sequence[AttemptOrder]) -> None:
        """Take over, after a restart of the manager, the attempts that are started or assigned in the store.

        An attempt whose agent lives continues (or starts now if its agent does not know it); if the agent
        is gone, what its spool holds is delivered, then its end.
        """

    @abstractmethod
    def start_trial(self, order: AttemptOrder) -> None:
        """Start an attempt; all that it reports, and its end, arrive as events."""

    def start_together(self, orders: Sequence[AttemptOrder]) -> None:
        """Start several attempts; an executor may do so in one go, to save time."""
        for order in orders:
            self.start_trial(order)

    @abstractmethod
    def stop_trial(self, trial_id: str, attempt: int) -> None:
        """End an attempt with its whole process tree, after the setup's grace; the end arrives as an event."""

    def pause_trial(self, trial_id: str, attempt: int) -> None:
        """Have an attempt save a checkpoint if it can, and end; the end arrives as an event, `paused` or not.

        An executor that cannot pause stops the attempt.
        """
        self.stop_trial(trial_id, attempt)

    def take_cursors(self) -> Cursors:
        """Return how far the events reach that were delivered since the last call."""
        return {}

    def confirm(self, cursors: Cursors) -> None:  # noqa: B027  (a hook: there may be no agents)
        """Note that events up to these cursors are committed: the next `acknowledge` or start may say so."""

    @abstractmethod
    def acknowledge(self) -> None:
        """Let agents forget the events that are confirmed, and ask for the next ones."""

    @abstractmethod
    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        """Return at most `limit` bytes of a file in the attempt's folder, on whatever machine that is."""

    @abstractmethod
    async def close(self) -> None:
        """End all agents and what they run; nothing is left when this returns."""

    def prepare(self, agents: Sequence[str]) -> None:  # noqa: B027  (a hook: there may be nothing to prepare)
        """Make agents on which trials will run soon, where that saves time."""

    def kill(self) -> None:  # noqa: B027  (a hook: there may be nothing to kill)
        """End all agents at once, without grace; the ends of their attempts arrive as events."""

    def kill_agents(self, orders: Sequence[AttemptOrder]) -> None:  # noqa: B027  (a hook, as `kill`)
        """End the agents of attempts that do not end."""

    def give_up(self, orders: Sequence[AttemptOrder], reason: str, now: float) -> Sequence[Event]:
        """Return the ends of attempts that do not end, after what they have reported and was not delivered."""
        return [AttemptEnded(now, order.trial_id, order.attempt, error=reason) for order in orders]

    def expect_losses(self) -> None:  # noqa: B027  (a hook: there may be nothing to lose)
        """Stop warning about lost agents: everything is about to be killed on purpose."""

    def warnings(self) -> Sequence[str]:
        """Return, as sentences, what is wrong at present where trials run."""
        return ()

    def waits(self) -> Iterable[Wait]:
        """Return what is waited for where trials run, and for how long."""
        return ()

    def on_idle(self, next_deadline: float | None) -> None:  # noqa: B027  (a hook: most have no virtual clock)
        """Advance the virtual clock: the manager is idle, and the dispatcher owes no reply."""
