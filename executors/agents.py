"""What all executors that run trials in agents share: orders in, batches of events out, lost agents.

A subclass says how to reach an agent (`_connect`) and which resources it offers. The rest follows from these rules:

* An attempt is started when its order is committed, so it may be started twice: by this manager or by the next one. An
  agent that knows the attempt does nothing.
* What an agent reports is in a spool first. So its message is only the quick way: an agent that is gone has left its
  results in the spool, and what an agent has forgotten is read there.
* The manager pulls: an agent sends its next events when it is asked for them, with the number of the last one that is
  committed. Until then the agent keeps it. So events pass three places: `_delivered` (in the loop's inbox), the turn
  that commits them, and `_confirmed` (committed, not yet acknowledged).
* Every attempt that was started ends with exactly one event: `AttemptEnded`, from its agent, its spool, or, when the
  agent is gone and the spool has no end, from here; or `StartRefused`, if it never began.
* After a restart, `attach` takes up the attempts of live agents as they are. Orders of agents that are gone are ended
  from their spools, or carried out again if nothing shows that they began.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..runner import AgentLost, AgentSilent, AttemptOrder, Event, ExecutorFailed, Wait
from ..trial_agent import Event as AgentEvent
from ..trial_agent import FilePart, HelloReply, Kill, Pause, ReadFile, Request, Start
from .running_attempts import Attempt, RunningAttempts
from .tasks import START_TIMEOUT, SUSPECT_AFTER, Tasks
from .trial_executor import Cursors, Deliver, RunSetup, TrialExecutor

_log = logging.getLogger(__name__)
# The beginning of a reason that names the agent of a trial: "its agent was killed by signal 9".
_OF_AGENT = re.compile(r"^its agent('s| was)? ")

# Beyond the grace: time for the agent to kill a process tree, and for its report to arrive.
_KILL_MARGIN = 1.0


class Listener(ABC):
    """Receives what an agent reports; called on the event loop's thread."""

    def on_met(self, agent: str, running: Collection[Attempt], seen: Collection[Attempt]) -> None:  # noqa: B027
        """Note which attempts an agent runs, and which it has run, before its first batch (a hook)."""

    @abstractmethod
    def on_batch(self, agent: str, events: Sequence[AgentEvent], cursor: int) -> None:
        """Take the reply to `poll`: events and the number of the last one."""

    def on_silent(self, agent: str, is_silent: bool) -> None:  # noqa: B027  (a hook: Ray knows better)
        """Note that the agent has given no sign of life for some seconds; with False, that it does again."""

    @abstractmethod
    def on_lost(self, agent: str, reason: str) -> None:
        """Note that the agent is gone or can no longer be reached; called once."""

    def on_failure(self, error: Exception) -> None:
        """Take the error of work that no caller awaits."""
        raise error


class AgentLink(ABC):
    """A connection to one agent; messages sent before it is established are kept until it is.

    A link may keep requests and polls until `flush`, so that they leave together.
    """

    @abstractmethod
    def send(self, request: Request) -> None:
        """Send a request that has no reply (a `RunSpec`, `Start`, `Kill`)."""

    @abstractmethod
    def poll(self, after: int) -> None:
        """Acknowledge the events up to `after` and ask for the next; they arrive through `Listener.on_batch`."""

    def flush(self) -> None:  # noqa: B027  (a hook: a link may send at once)
        """Send now, in one write, what was kept so far."""

    @abstractmethod
    async def ask(self, request: ReadFile) -> FilePart:
        """Send a request and wait for its reply."""

    @abstractmethod
    def kill(self) -> None:
        """End the agent at once; `Listener.on_lost` is called when it is gone."""

    @abstractmethod
    async def close(self, grace: float) -> None:
        """End the agent and all that it runs; return when it is gone."""


class AgentTrialExecutor(TrialExecutor, Listener):
    """A `TrialExecutor` over agents."""

    def __init__(self) -> None:
        self._setup: RunSetup | None = None
        self._deliver: Deliver | None = None
        self._links: dict[str, AgentLink] = {}  # agents that can be reached, or may be soon
        self._attempts = RunningAttempts(lambda: self.setup, self._on_end, self._kill_agent)
        # The last event, by link and not by name: another agent of the same name counts its events from 1. The three
        # below have only keys that are in `_links`.
        self._delivered: dict[AgentLink, int] = {}  # not in any turn yet
        self._confirmed: dict[AgentLink, int] = {}  # committed, and not yet acknowledged
        self._seen: dict[AgentLink, frozenset[Attempt]] = {}  # what agents had run when they were met
        self._silent: dict[str, float] = {}  # agents in `_links`, and since when
        self._ending: dict[Attempt, float] = {}  # attempts that were asked to end, and when
        self._closing = False
        self._is_starting_several = False
        self._losses_are_news = True
        self._tasks = Tasks(self.on_failure)

    @abstractmethod
    def _connect(self, agent: str, *, spawn: bool) -> AgentLink | None:
        """Return a link to `agent`: with `spawn`, make the agent if needed; without, return None if it is gone."""

    @property
    def setup(self) -> RunSetup:
        """What `open` was given."""
        if self._setup is None:
            raise RuntimeError("the executor is not open")
        return self._setup

    def prepare(self, agents: Sequence[str]) -> None:
        """Make agents before the first trials exist: they start while the tuner does."""
        for agent in agents:
            if agent not in self._links:
                self._take_up(agent, self._connect(agent, spawn=True))

    def start_trial(self, order: AttemptOrder) -> None:
        """Start an attempt on the agent that the order names; make that agent if necessary."""
        if (order.trial_id, order.attempt) in self._attempts.orders:
            return
        self._attempts.add(order, self.setup.clock())
        link = self._links.get(order.agent) or self._take_up(
            order.agent, self._connect(order.agent, spawn=True)
        )
        if link is not None:
            if (order.trial_id, order.attempt) in self._seen.get(link, ()):
                self._recover(order)
            link.send(self._start_request(order))
            self._poll(link)
            if not self._is_starting_several:
                link.flush()

    def start_together(self, orders: Sequence[AttemptOrder]) -> None:
        """Start several attempts; what one agent gets leaves in one write."""
        self._is_starting_several = True
        try:
            super().start_together(orders)
        finally:
            self._is_starting_several = False
            for agent in {order.agent for order in orders} & self._links.keys():
                self._links[agent].flush()

    def stop_trial(self, trial_id: str, attempt: int) -> None:
        """Kill an attempt where it runs."""
        order = self._attempts.orders.get((trial_id, attempt))
        if order is not None and (link := self._links.get(order.agent)) is not None:
            link.send(Kill(trial_id, attempt))
            link.flush()
            self._ending.setdefault((trial_id, attempt), self.setup.clock())
            self._tasks.later(self._kill_patience, self._replace_agent, order)

    def pause_trial(self, trial_id: str, attempt: int) -> None:
        """Have an attempt save a checkpoint and end; a function runs on until its next report."""
        order = self._attempts.orders.get((trial_id, attempt))
        if order is not None and (link := self._links.get(order.agent)) is not None:
            link.send(Pause(trial_id, attempt))
            link.flush()

    def _replace_agent(self, order: AttemptOrder) -> None:
        """Kill the agent of a trial that does not end, such as a function that never reports a result."""
        if (order.trial_id, order.attempt) in self._attempts.orders and order.agent in self._links:
            _log.warning("trial %s does not end when asked to: its agent is killed", order.trial_id)
            self._kill_agent(order.agent)

    def _kill_agent(self, agent: str) -> None:
        """Kill an agent; its attempts end when it is gone."""
        if (link := self._links.get(agent)) is not None:
            link.kill()

    def on_met(self, agent: str, running: Collection[Attempt], seen: Collection[Attempt]) -> None:
        """Read from the spool the results that an agent does not report again, before it reports the others.

        An earlier manager acknowledged them. But the store may be an older copy, or have lost its last commits in a
        power cut. Then the agent may even run an attempt that the store does not know, which is ended.
        """
        if (link := self._links.get(agent)) is None:
            return
        mine = {(order.trial_id, order.attempt): order for order in self._attempts.of(agent)}
        self._seen[link] = frozenset(seen)
        if not mine.keys() >= set(running):
            what = "runs a trial that the experiment's database does not know"
            _log.warning("agent %s %s: it is ended", agent, what)
            link.kill()
        for key, order in mine.items():
            if key in seen:
                self._recover(order)

    def _recover(self, order: AttemptOrder) -> None:
        """Deliver the results in the spool of an attempt."""
        self._emit(self._attempts.results(order))

    async def attach(self, orders: Sequence[AttemptOrder]) -> None:
        """Take up attempts after a restart: from their live agents, else from their spools."""
        for order in orders:
            self._attempts.add(order, order.start_time or 0.0)
        agents = {order.agent for order in orders}
        await self._end_others(agents | self._links.keys())
        links = {agent: self._connect(agent, spawn=False) for agent in sorted(agents)}
        for agent in [agent for agent, link in links.items() if link is None]:
            await self.end_orphans(agent)
        for agent in [agent for agent, link in links.items() if link is None]:
            self._take_over([order for order in orders if order.agent == agent])
        for agent, link in links.items():
            if link is not None:
                self._take_up(agent, link)
                for order in orders:
                    if order.agent == agent:
                        link.send(self._start_request(order, again=True))
                link.flush()

    async def _end_others(self, kept: Collection[str]) -> None:
        """End agents of an earlier manager that run what the store does not know (a hook for subclasses)."""

    def take_cursors(self) -> Cursors:
        """Return how far each agent's events were delivered since the last call."""
        cursors, self._delivered = self._delivered, {}
        return cursors

    def confirm(self, cursors: Cursors) -> None:
        """Note up to where the events of each remaining agent are committed."""
        if cursors:
            there = set(self._links.values())
            self._confirmed.update({link: cursor for link, cursor in cursors.items() if link in there})

    def acknowledge(self) -> None:
        """Ask every agent whose last batch is committed for more, which also acknowledges that batch.

        An agent without a trial has nothing more to report: it is asked together with its next start, in one message.
        """
        if self._confirmed:
            for agent, link in self._links.items():
                if link in self._confirmed and self._attempts.busy[agent]:
                    self._poll(link)
                    link.flush()

    async def end_orphans(self, agent: str) -> None:
        """Kill what a lost agent's attempts left running, where possible: it may no longer report anything."""

    async def read_file(self, order: AttemptOrder, name: str, offset: int, limit: int) -> bytes:
        """Read a file of the attempt's folder through its agent, or here when the agent is gone."""
        path = f"trials/{order.sequence_id}/{name}"
        link = self._links.get(order.agent)
        if link is None:
            with (self.setup.folder / path).open("rb") as file:
                file.seek(offset)
                return file.read(limit)
        answer = await link.ask(ReadFile(path, offset, limit))
        data = answer.get("data", b"")
        return base64.b64decode(data) if isinstance(data, str) else data

    async def close(self) -> None:
        """End all agents at once; raise the first error after all have ended."""
        self._closing = True
        grace = self._setup.run.grace if self._setup else 0.0
        links = list(self._links.values())
        self._links.clear()
        for outcome in await asyncio.gather(*(link.close(grace) for link in links), return_exceptions=True):
            if outcome is not None:
                raise outcome

    def waits(self) -> Iterator[Wait]:
        """Yield which agents are starting or silent, and which attempts are to end."""
        for agent, link in self._links.items():
            if link not in self._seen:
                yield self._wait_for_start(agent)
        for agent, since in self._silent.items():
            yield Wait(
                what=f"agent {agent}, which gives no sign of life",
                since=since,
                longest=self.setup.agent_timeout,
                then="it is killed, and its trials are retried",
            )
        for key, since in self._ending.items():
            order = self._attempts.orders[key]
            yield Wait(
                what=f"trial {order.sequence_id} to end",
                since=since,
                longest=self._kill_patience,
                then="its agent is killed",
            )

    def _wait_for_start(self, agent: str) -> Wait:
        return Wait(
            what=f"agent {agent} to start",
            since=self._attempts.first_start(agent),
            longest=max(self.setup.agent_timeout, START_TIMEOUT),
            then="it is killed, and its trials are retried",
        )

    @property
    def _kill_patience(self) -> float:
        """How long (s) an attempt may take to end before its agent is killed."""
        return self.setup.run.grace + _KILL_MARGIN

    def expect_losses(self) -> None:
        """Stop warning about lost agents: they are killed on purpose."""
        self._losses_are_news = False

    def kill(self) -> None:
        """Kill all agents; their attempts end as the agents disappear."""
        self.expect_losses()
        for link in list(self._links.values()):
            link.kill()

    def kill_agents(self, orders: Sequence[AttemptOrder]) -> None:
        """Kill the agents of attempts that do not end; these end as the agents disappear."""
        for order in orders:
            self._replace_agent(order)

    def give_up(self, orders: Sequence[AttemptOrder], reason: str, now: float) -> Sequence[Event]:
        """Return what attempts have left in their spools, and their ends, from there if possible."""
        known = self._attempts.orders
        running = [order for order in orders if (order.trial_id, order.attempt) in known]
        events = super().give_up([order for order in orders if order not in running], reason, now)
        for agent in dict.fromkeys(order.agent for order in running):
            mine = [order for order in running if order.agent == agent]
            events = [*events, *self._attempts.last_events(mine, reason)]
        return events

    def on_batch(self, agent: str, events: Sequence[AgentEvent], cursor: int) -> None:
        """Translate an agent's events and deliver them."""
        if (link := self._links.get(agent)) is not None:
            self._delivered[link] = cursor
        self._emit(self._attempts.events(agent, events, f"agent {agent}", cursor))

    def on_silent(self, agent: str, is_silent: bool) -> None:
        """Report the silence to the runner, which gives a silent agent no new work."""
        if is_silent:
            self._silent[agent] = self.setup.clock() - SUSPECT_AFTER
            _log.warning("agent %s gives no sign of life", agent)
        else:
            self._silent.pop(agent, None)
            _log.info("agent %s gives signs of life again", agent)
        self._emit([AgentSilent(self.setup.clock(), agent, is_over=not is_silent, cause=f"agent {agent}")])

    def on_lost(self, agent: str, reason: str) -> None:
        """Deliver what the lost agent's attempts left in their spools, then their ends."""
        self._drop(agent)
        if self._closing:
            return
        level = logging.WARNING if self._losses_are_news else logging.INFO
        _log.log(level, "agent %s is lost: %s", agent, _OF_AGENT.sub("", reason))
        orders = self._attempts.of(agent)
        self._emit(self._attempts.last_events(orders, reason))
        if not orders and self._setup is not None:
            self._emit([AgentLost(self.setup.clock(), agent, cause=f"agent {agent} lost")])

    def on_failure(self, error: Exception) -> None:
        """End the experiment, which can be resumed: what should have followed the failed work never happens."""
        _log.error("the executor has failed", exc_info=error)
        if not self._closing and self._setup is not None:
            reason = f"the executor has failed: {type(error).__name__}: {error}"
            self._emit([ExecutorFailed(self.setup.clock(), reason)])

    def _start_request(self, order: AttemptOrder, *, again: bool = False) -> Start:
        return Start(
            trial=order.trial_id,
            attempt=order.attempt,
            sequence_id=order.sequence_id,
            parameters=order.record,
            first_sequence=order.first_sequence,
            gpus=None if order.gpus is None else self._device_names(order.gpus),
            checkpoint=order.checkpoint,
            budget=order.budget,
            keep=self.setup.run.keeping,
            mark=order.mark,
            again=again,
        )

    def _device_names(self, gpus: Sequence[int]) -> tuple[int | str, ...]:
        """Return what the devices of a trial are called in its environment."""
        return tuple(gpus)

    def _take_up(self, agent: str, link: AgentLink | None) -> AgentLink | None:
        if link is None:
            return None
        self._links[agent] = link
        link.send(self.setup.run)
        link.poll(0)
        return link

    def _take_over(self, orders: Sequence[AttemptOrder]) -> None:
        """End the attempts of an agent that is gone; start them again if none left a trace and the setup allows it.

        Their agent may never have been made.
        """
        began = any(order.start_time is not None or self._attempts.left(order) for order in orders)
        if began or not self.setup.may_start:
            self._emit(self._attempts.last_events(orders, "its agent is gone"))
            return
        for order in orders:
            self._attempts.forget((order.trial_id, order.attempt))
            self.start_trial(order)

    def _poll(self, link: AgentLink) -> None:
        if (cursor := self._confirmed.pop(link, None)) is not None:
            link.poll(cursor)

    def _drop(self, agent: str) -> None:
        """Forget the link to an agent that is gone or is leaving, and what is still to be sent to it."""
        if (link := self._links.pop(agent, None)) is not None:
            self._silent.pop(agent, None)
            self._seen.pop(link, None)
            self._delivered.pop(link, None)
            self._confirmed.pop(link, None)

    def _on_end(self, order: AttemptOrder) -> None:
        """Release what an ended attempt held (subclasses do more)."""
        self._ending.pop((order.trial_id, order.attempt), None)

    def _emit(self, events: Iterable[Event]) -> None:
        if self._deliver is not None:
            self._deliver(list(events))


def attempts_in(hello: HelloReply) -> tuple[set[Attempt], set[Attempt]]:
    """Return which attempts an agent runs, and which it has run, by its reply to `Hello`."""
    running = {(each["trial"], each["attempt"]) for each in hello["running"]}
    return running, {(trial, attempt) for trial, attempt in hello["seen"]}
