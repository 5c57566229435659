"""What tests of executors share: trials that do what their parameters say, and sessions that record events."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pitchpipe.executors.agents import AgentTrialExecutor, Attempt, Listener
from pitchpipe.executors.local.local_executor import LocalTrialExecutor
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.executors.trial_executor import RunSetup, TrialExecutor
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, Event, Reported
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.trial_agent import Event as AgentEvent
from pitchpipe.trial_agent import RunSpec

PATIENCE = 60.0


def on(fixture: str, *cases: str | tuple[Any, ...], more: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Repeat a test on these kinds of executors, each with the values of the parameters `more`.

    A kind may be followed by the way of its agents: those on Ray are "called", or have sockets; those of this machine
    are processes "apart", or forked.
    """
    rows = [(case,) if isinstance(case, str) else case for case in cases]
    marked = [pytest.param(*row, marks=[pytest.mark.ray] if "ray" in row[0] else []) for row in rows]
    return pytest.mark.parametrize((fixture, *more), marked, indirect=[fixture])


def behave(parameters: dict[str, Any]) -> Any:
    """Do what the parameters say, as a trial."""
    import time
    from pathlib import Path

    from pitchpipe import report_intermediate_result

    for value in parameters.get("reports", []):
        report_intermediate_result(value)
    if "print" in parameters:
        print(parameters["print"])
    if "count_to" in parameters:
        count(parameters)
    if "raise" in parameters:
        raise ValueError(parameters["raise"])
    if "touch" in parameters:
        Path(parameters["touch"]).touch()
    if "wait_for" in parameters:
        wait_for(Path(parameters["wait_for"]), report_intermediate_result)
    if "sleep" in parameters:
        time.sleep(parameters["sleep"])
    if "wait_silently" in parameters:
        wait_for(Path(parameters["wait_silently"]), lambda number: None)
    return parameters.get("final")


def wait_for(path: Path, report: Callable[[int], None]) -> None:
    """Report until a file is there; a trial can be stopped at any report."""
    import time

    for number in range(10_000):
        if path.exists():
            return
        report(number)
        time.sleep(0.01)
    raise TimeoutError(path)


def count(parameters: dict[str, Any]) -> None:
    """Report numbers, from where an earlier attempt was; a file stops the count until it is there."""
    import time
    from pathlib import Path

    from pitchpipe import get_checkpoint, report_intermediate_result, save_checkpoint

    checkpoint = get_checkpoint()
    for number in range(checkpoint.to_dict()["next"] if checkpoint else 0, parameters["count_to"]):
        report_intermediate_result(number)
        save_checkpoint({"next": number + 1})
        while number >= 2 and "until" in parameters and not Path(parameters["until"]).exists():
            time.sleep(0.01)
            report_intermediate_result(number)


behave.__module__ = wait_for.__module__ = count.__module__ = (
    "__main__"  # pickled by value: agents cannot import this file
)


def imagine(parameters: Mapping[str, Any]) -> SimulatedRun:
    """Return what the same trial would do in a simulation; waiting for a file takes very long."""
    step = 1e6 if "wait_for" in parameters else 1.0
    reports = [*parameters.get("reports", []), *([0] if "wait_for" in parameters else [])]
    if "count_to" in parameters:
        reports = list(range(parameters["count_to"]))
    final, error = parameters.get("final"), parameters.get("raise")
    return SimulatedRun(final, reports, step=step, error=error, checkpoint_every=1)


class Session:
    """An open executor, with what it has delivered."""

    def __init__(self, executor: TrialExecutor, setup: RunSetup) -> None:
        self.executor = executor
        self.setup = setup
        self.events: list[Event] = []
        self.arrived = asyncio.Event()
        self.acknowledging = True
        self.totals = Totals()
        self._sequence = 0

    async def open(self) -> Totals:
        return await self.executor.open(self.setup, self._deliver)

    def _deliver(self, events: Sequence[Event]) -> None:
        self.events += events
        self.arrived.set()
        if self.acknowledging:
            asyncio.get_running_loop().call_soon(self.acknowledge)

    def acknowledge(self) -> None:
        self.executor.confirm(self.executor.take_cursors())
        self.executor.acknowledge()

    def order(self, slot: int = 0, **parameters: Any) -> AttemptOrder:
        self._sequence += 1
        record = json.dumps({"parameter_id": self._sequence, "parameters": parameters})
        return AttemptOrder(
            trial_id=f"T{self._sequence:04}",
            attempt=1,
            sequence_id=self._sequence,
            record=record,
            slot=slot,
            agent=f"{slot}-0",
        )

    def start(self, slot: int = 0, **parameters: Any) -> AttemptOrder:
        order = self.order(slot, **parameters)
        self.executor.start_trial(order)
        return order

    async def outcome_of(self, **parameters: Any) -> list[Any]:
        """Run an attempt; return its outcome."""
        order = self.start(**parameters)
        await self.end_of(order)
        return self.outcome(order)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let events arrive until `condition` holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.arrived.clear()
                if self.executor.has_virtual_clock:
                    self.executor.on_idle(None)
                    await asyncio.sleep(0)
                else:
                    await self.arrived.wait()

    async def until_replaced(self) -> None:
        """Wait until this manager has lost its agents to the next one, with which it shares a process.

        It calls the agents that it has, and Ray ends the process for a call made after the next manager has left Ray.
        """
        await self.until(lambda: not self.links)

    @property
    def links(self) -> dict[str, Any]:
        """Return the links of an executor that has agents."""
        return self.executor._links if isinstance(self.executor, AgentTrialExecutor) else {}

    def link_of(self, order: AttemptOrder) -> Any:
        return self.links[order.agent]

    async def end_of(self, order: AttemptOrder) -> AttemptEnded:
        await self.until(lambda: bool(self.of(order, AttemptEnded)))
        (ended,) = self.of(order, AttemptEnded)
        return ended

    async def started(self, order: AttemptOrder) -> AttemptStarted:
        await self.until(lambda: bool(self.of(order, AttemptStarted)))
        (started,) = self.of(order, AttemptStarted)
        return started

    def of(self, order: AttemptOrder, *kinds: type) -> list[Any]:
        return [
            event
            for event in self.events
            if getattr(event, "trial_id", None) == order.trial_id and isinstance(event, kinds)
        ]

    def outcome(self, order: AttemptOrder) -> list[Any]:
        """Return what an attempt reported, and that it ended, in order."""
        return [
            "ended"
            if isinstance(event, AttemptEnded)
            else (event.kind, event.sequence, json.loads(event.value))
            for event in self.of(order, Reported, AttemptEnded)
        ]


def setup_of(folder: Path, run: RunSpec, **options: Any) -> RunSetup:
    """Return the setup of an experiment in a folder, one trial at a time."""
    values = {"concurrency": 1, "clock": lambda: 100.0, **options}
    return RunSetup(experiment_id="exp", folder=folder, token="secret", run=run, **values)


class Bench:
    """Makes sessions with one kind of executor."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.clock = VirtualClock(1000.0) if kind == "simulated" else time.time
        self.agent_timeout = 60.0
        for name in ("logs", "agents"):
            (folder / name).mkdir(parents=True)
        (folder / "trial.pkl").write_bytes(cloudpickle.dumps(behave))

    def executor(self) -> TrialExecutor:
        if self.kind == "simulated":
            assert isinstance(self.clock, VirtualClock)
            return SimulatedTrialExecutor(imagine, self.clock)
        if self.kind == "ray":
            from pitchpipe.executors.ray.ray_executor import RayTrialExecutor

            return RayTrialExecutor(idle_timeout=0.0)
        if self.kind == "local":
            return LocalTrialExecutor()
        raise LookupError(f"'{self.kind}' has no executor: construct it here")

    def setup(self, request: Request | None = None, **run: Any) -> RunSetup:
        path = str(self.folder / "trial.pkl")
        run = {"kind": "function", "path": path, "grace": 1.0, "orphan_timeout": 30.0, **run}
        spec = RunSpec(experiment="exp", folder=str(self.folder), **run)
        options = {"clock": self.clock, "request": request or Request(), "agent_timeout": self.agent_timeout}
        return setup_of(self.folder, spec, concurrency=2, **options)

    async def killed(self, **run: Any) -> Session:
        """Open a session that does not close: its agents live on, as those of a manager that is killed."""
        session = Session(self.executor(), self.setup(**run))
        await session.open()
        return session

    @asynccontextmanager
    async def session(
        self, request: Request | None = None, executor: TrialExecutor | None = None, **run: Any
    ) -> AsyncIterator[Session]:
        session = Session(executor or self.executor(), self.setup(request, **run))
        try:
            session.totals = await session.open()
            yield session
        finally:
            await session.executor.close()


class Heard(Listener):
    """Remembers what a link says about its agent; an error of the link is a loss."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self.silences: list[bool] = []
        self.losses: list[str] = []
        self.meetings = 0
        self.arrived = asyncio.Event()

    def on_met(self, agent: str, running: Collection[Attempt], seen: Collection[Attempt]) -> None:
        self.meetings += 1

    def on_batch(self, agent: str, events: Sequence[AgentEvent], cursor: int) -> None:
        self.events += events
        self.arrived.set()

    def on_silent(self, agent: str, is_silent: bool) -> None:
        self.silences.append(is_silent)

    def on_lost(self, agent: str, reason: str) -> None:
        self.losses.append(reason)
        self.arrived.set()

    def on_failure(self, error: Exception) -> None:
        self.on_lost("", repr(error))
