"""Agents forget a result only when it is committed, whatever the disk does and whenever the manager dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.agents import AgentLink, AgentTrialExecutor, Listener
from pitchpipe.executors.trial_executor import Deliver, RunSetup
from pitchpipe.manager.dispatcher_link import dispatcher
from pitchpipe.manager.dispatcher_link.dispatcher_process import DispatcherProcess
from pitchpipe.manager.experiment_factory import create_experiment
from pitchpipe.manager.manager import Manager
from pitchpipe.runner.ledger import Totals
from pitchpipe.store import NotWritableError, StoreError, StoreTick
from pitchpipe.trial_agent import Event, Report, Request, Start, Started
from pitchpipe.trial_agent.agent_events import Outbox

from .experiments import config, let_go, viewed

PATIENCE = 90.0
NOW = 1000.0


class Agent(AgentLink):
    """An agent that reports when the test says so, from the outbox that real agents have."""

    def __init__(self, name: str, listener: Listener, changed: asyncio.Event) -> None:
        self.outbox = Outbox(self._hand_out)
        self.reported: list[tuple[int, int]] = []
        self.handed_out = 0
        self._name, self._listener, self._changed = name, listener, changed
        self._polled_after: int | None = None
        self._order: Start

    def send(self, request: Request) -> None:
        if isinstance(request, Start):
            self._order = request
            who = {"trial": request.trial, "attempt": request.attempt}
            self.outbox.put(Started(**who, pid=1, time=NOW))

    def report(self) -> None:
        sequence = len(self.reported)
        self.reported.append((self._order.sequence_id, sequence))
        who = {"trial": self._order.trial, "attempt": self._order.attempt}
        report = Report(**who, kind="intermediate", sequence=sequence, value="0.5", time=NOW)
        self.outbox.put(report)

    def kept(self) -> set[tuple[int, int]]:
        """Return the results that the next manager could still get."""
        left, _ = self.outbox.take(0)
        return {(self._order.sequence_id, event.sequence) for event in left if isinstance(event, Report)}

    def poll(self, after: int) -> None:
        self._polled_after = after
        self._hand_out()
        self._changed.set()

    def _hand_out(self) -> None:
        if self._polled_after is None:
            return
        batch, cursor = self.outbox.take(self._polled_after)
        if batch:
            self._polled_after = None
            asyncio.get_running_loop().call_soon(self._deliver, batch, cursor)

    def _deliver(self, batch: list[Event], cursor: int) -> None:
        self._listener.on_batch(self._name, batch, cursor)
        self.handed_out = cursor
        self._changed.set()

    async def ask(self, request: Request) -> dict[str, Any]:
        raise ConnectionError("it does not reply")

    def kill(self) -> None:
        pass

    async def close(self, grace: float) -> None:
        pass


class Agents(AgentTrialExecutor):
    """The executor of these agents; `changed` is set whenever one of them was used."""

    def __init__(self) -> None:
        super().__init__()
        self.agents: list[Agent] = []
        self.changed = asyncio.Event()

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        self._setup, self._deliver = setup, deliver
        return Totals()

    def _connect(self, agent: str, *, spawn: bool) -> AgentLink | None:
        self.agents.append(Agent(agent, self, self.changed))
        self.changed.set()
        return self.agents[-1]


class Disk:
    """The way from a manager to its store: commits find room, or do not, or fail; each sets `changed`."""

    def __init__(self, manager: Manager, changed: asyncio.Event) -> None:
        self.has_room = True
        self.rooms_left: int | None = None  # so many commits succeed, then the disk fails
        self._commit, self._changed = manager.store.commit, changed
        manager.store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, tick: StoreTick) -> None:
        self._changed.set()
        if self.rooms_left == 0:
            raise StoreError("the disk is gone")
        if not self.has_room:
            raise NotWritableError("the disk is full")
        self._commit(tick)
        if self.rooms_left is not None:
            self.rooms_left -= 1


async def until(changed: asyncio.Event, condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            changed.clear()
            await changed.wait()


def committed(directory: Path) -> set[tuple[int, int]]:
    with viewed(directory) as store:
        return {(row[0], row[2]) for row in store.metrics() if row[1] == "PERIODICAL"}


@pytest.fixture
def experiment(tmp_path: Path) -> tuple[Manager, Agents]:
    executor = Agents()
    given = config(max_trial_number=2, trial_concurrency=2, kill_grace=0)
    manager = create_experiment(
        given, directory=tmp_path, experiment_id="exp", executor=executor, clock=lambda: NOW
    )
    return manager, executor


async def fill_the_disk(manager: Manager, disk: Disk, executor: Agents) -> None:
    """One agent's result waits for room in a turn, another's comes in behind it."""
    first, second = executor.agents
    disk.has_room = False
    first.report()
    await until(executor.changed, manager.warnings)
    second.report()
    await until(executor.changed, lambda: second.handed_out == second.outbox.last)


def held_turn_is_written(disk: Disk, _dispatcher: DispatcherProcess) -> None:
    disk.has_room, disk.rooms_left = True, 1


def dispatcher_reads_again(disk: Disk, dispatcher: DispatcherProcess) -> None:
    dispatcher.on_drained()
    disk.rooms_left = 0


@pytest.mark.parametrize("what_happens", [held_turn_is_written, dispatcher_reads_again])
def test_result_that_came_while_there_was_no_room_is_kept_until_it_is_committed(
    what_happens: Callable[[Disk, DispatcherProcess], None],
    experiment: tuple[Manager, Agents],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pitchpipe.manager.disk_space._TRY_AGAIN", 0.01)
    start, dispatchers = dispatcher.DispatcherProcess.start, list[DispatcherProcess]()

    async def noted_start(process: DispatcherProcess, *args: Any) -> None:
        dispatchers.append(process)
        await start(process, *args)

    monkeypatch.setattr(dispatcher.DispatcherProcess, "start", noted_start)
    manager, executor = experiment
    disk, changed = Disk(manager, executor.changed), executor.changed

    async def main() -> None:
        running = asyncio.ensure_future(manager.run())
        await until(changed, lambda: len(executor.agents) == 2)
        for agent in executor.agents:
            await until(changed, lambda agent=agent: agent.outbox.confirmed == agent.outbox.last > 0)
            agent.report()
        await until(changed, lambda: len(committed(tmp_path)) == 2)
        await fill_the_disk(manager, disk, executor)
        what_happens(disk, *dispatchers)
        await running

    with pytest.raises(StoreError, match="the disk is gone"):
        asyncio.run(main())
    let_go(manager)
    reported = {result for agent in executor.agents for result in agent.reported}
    kept = {result for agent in executor.agents for result in agent.kept()}
    assert len(reported) == 4
    assert reported - committed(tmp_path) <= kept
