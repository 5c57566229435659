"""What tests of executors share: trials that do what their parameters say, and sessions that record events."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle

from pitchpipe.executors.agents import AgentTrialExecutor
from pitchpipe.executors.base import RunSetup, TrialExecutor
from pitchpipe.executors.local.executor import LocalTrialExecutor
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AgentSilent, AttemptEnded, AttemptStarted, Event, Reported
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.trial_agent import RunSpec

from .ray_support import lives

PATIENCE = 60.0


def behave(parameters: dict[str, Any]) -> Any:
    """Do what the parameters say, as a trial."""
    import time
    from pathlib import Path

    from pitchpipe import report_intermediate_result

    for value in parameters.get("reports", []):
        report_intermediate_result(value)
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
        executor = self.executor
        if isinstance(executor, AgentTrialExecutor):
            await self.until(lambda: not executor._links)

    async def end_of(self, order: AttemptOrder) -> AttemptEnded:
        await self.until(lambda: bool(self.of(order, AttemptEnded)))
        (ended,) = self.of(order, AttemptEnded)
        return ended

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
            from pitchpipe.executors.ray.executor import RayTrialExecutor

            return RayTrialExecutor(idle_timeout=0.0)
        if self.kind == "local":
            return LocalTrialExecutor()
        raise LookupError(f"'{self.kind}' has no executor: construct it here")

    def setup(self, request: Request | None = None, **run: Any) -> RunSetup:
        path = str(self.folder / "trial.pkl")
        run = {"kind": "function", "path": path, "grace": 1.0, "orphan_timeout": 30.0, **run}
        spec = RunSpec(experiment="exp", folder=str(self.folder), **run)
        return RunSetup(
            experiment_id="exp",
            folder=self.folder,
            token="secret",
            run=spec,
            concurrency=2,
            clock=self.clock,
            request=request or Request(),
            agent_timeout=self.agent_timeout,
        )

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


# --------------------------------------------------------------------------- agents that fall silent


def is_stopped(pid: int) -> bool:
    """Return whether SIGSTOP has reached all threads of a process (Linux)."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


async def run_to_silence(session: Session, never: Path) -> tuple[AttemptOrder, int]:
    """Start an attempt, stop its agent (SIGSTOP) while it reports, and return both."""
    order = session.start(wait_for=str(never))
    await session.until(lambda: bool(session.of(order, Reported)))
    (started,) = session.of(order, AttemptStarted)
    os.kill(started.pid, signal.SIGSTOP)
    while not is_stopped(started.pid):  # until then one of its threads may still answer
        await asyncio.sleep(0.001)
    return order, started.pid


def silences(session: Session) -> list[tuple[str, bool]]:
    return [(event.agent, event.is_over) for event in session.events if isinstance(event, AgentSilent)]


async def check_frozen(bench: Bench, never: Path) -> None:
    async with bench.session() as session:
        order, pid = await run_to_silence(session, never)
        ended = await session.end_of(order)
        assert ended.lost
        assert ended.error == "its agent gave no sign of life for 1.5 s"
        assert (order.agent, False) in silences(session)
        assert not lives(pid)
        again = replace(order, attempt=2, agent="0-1", record='{"parameters": {"final": 1}}')
        session.executor.start_trial(again)
        await session.until(lambda: len(session.of(order, AttemptEnded)) == 2)
        assert not session.of(order, AttemptEnded)[-1].lost


async def check_thawed(bench: Bench, go: Path) -> None:
    bench.agent_timeout = 60.0
    async with bench.session() as session:
        order, pid = await run_to_silence(session, go)
        await session.until(lambda: silences(session)[-1:] == [(order.agent, False)])
        os.kill(pid, signal.SIGCONT)
        go.touch()
        ended = await session.end_of(order)
        assert not ended.lost
        assert (order.agent, True) in silences(session)


async def check_late(bench: Bench, go: Path) -> int:
    """Let an agent that the kill did not reach wake up, finish its trial and report it, too late."""
    async with bench.session() as session:
        order, pid = await run_to_silence(session, go)
        assert (await session.end_of(order)).lost
        before = list(session.events)
        go.touch()
        os.kill(pid, signal.SIGCONT)
        spool = bench.folder / "agents" / f"{order.agent}.jsonl"
        async with asyncio.timeout(PATIENCE):
            while '"ended"' not in spool.read_text():
                await asyncio.sleep(0.01)
        bench.agent_timeout = 60.0
        after = session.start(1, final=2)
        await session.end_of(after)
        new = [event for event in session.events if event not in before]
        assert [event for event in new if not isinstance(event, AgentSilent)] == session.of(
            after, AttemptStarted, Reported, AttemptEnded
        )
        assert lives(pid)
        return pid
