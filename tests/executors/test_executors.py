"""What every executor promises, whatever it runs trials on: one suite over all of them."""

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
import psutil
import pytest

from pitchpipe.executors.base import ExecutorError, RunSetup, TrialExecutor
from pitchpipe.executors.local.agent import LocalAgentLink
from pitchpipe.executors.local.executor import LocalTrialExecutor
from pitchpipe.executors.local.gpu_claims import is_listened_to
from pitchpipe.executors.simulated import SimulatedRun, SimulatedTrialExecutor, VirtualClock
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import (
    AgentLost,
    AgentSilent,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    Event,
    Reported,
)
from pitchpipe.runner.ledger import Request, Totals
from pitchpipe.runner.verdicts import is_checkpoint_gone
from pitchpipe.trial_agent import RunSpec

PATIENCE = 30.0


def behave(parameters: dict[str, Any]) -> Any:
    """A trial that does what its parameters say."""
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
    """The same trial in imagination; one that waits for a file takes very long."""
    step = 1e6 if "wait_for" in parameters else 1.0
    reports = [*parameters.get("reports", []), *([0] if "wait_for" in parameters else [])]
    if "count_to" in parameters:
        reports = list(range(parameters["count_to"]))
    return SimulatedRun(parameters.get("final"), reports, step, parameters.get("raise"), checkpoint_every=1)


class Session:
    """An open executor, with what it has delivered."""

    def __init__(self, executor: TrialExecutor, setup: RunSetup) -> None:
        self.executor = executor
        self.setup = setup
        self.events: list[Event] = []
        self.arrived = asyncio.Event()
        self.acknowledging = True
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
        """Let things happen until `condition` holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.arrived.clear()
                if self.executor.has_virtual_clock:
                    self.executor.on_idle(None)
                    await asyncio.sleep(0)
                else:
                    await self.arrived.wait()

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

    def told(self, order: AttemptOrder) -> list[Any]:
        """What an attempt reported, and that it ended, in order."""
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

    def executor(self, **options: Any) -> TrialExecutor:
        if self.kind == "simulated":
            assert isinstance(self.clock, VirtualClock)
            return SimulatedTrialExecutor(imagine, self.clock)
        if self.kind == "ray":
            from pitchpipe.executors.ray.executor import RayTrialExecutor

            return RayTrialExecutor(idle_timeout=0.0)
        return LocalTrialExecutor(**options)

    def setup(self, request: Request | None = None, **run: Any) -> RunSetup:
        path = str(self.folder / "trial.pkl")
        run = {"kind": "function", "path": path, "grace": 1.0, "orphan_timeout": 30.0, **run}
        spec = RunSpec(experiment="exp", folder=str(self.folder), **run)
        setup = RunSetup("exp", self.folder, "secret", spec, 2, self.clock, request or Request())
        return replace(setup, agent_timeout=self.agent_timeout)

    @asynccontextmanager
    async def session(self, request: Request | None = None, **run: Any) -> AsyncIterator[Session]:
        session = Session(self.executor(), self.setup(request, **run))
        try:
            await session.open()
            yield session
        finally:
            await session.executor.close()


@pytest.fixture(params=["simulated", "local", pytest.param("ray", marks=pytest.mark.ray)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    if request.param == "ray":
        request.getfixturevalue("shared_ray")
    return Bench(request.param, tmp_path / "exp")


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.ray)])
def real_bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    if request.param == "ray":
        request.getfixturevalue("shared_ray")
    return Bench(request.param, tmp_path / "exp")


# --------------------------------------------------------------------------- the contract


async def check_attempts(bench: Bench, tmp_path: Path) -> None:
    async with bench.session() as session:
        order = session.start(reports=[0.1, 0.2], final=0.3)
        ended = await session.end_of(order)
        assert session.told(order) == [
            ("intermediate", 0, 0.1),
            ("intermediate", 1, 0.2),
            ("final", 0, 0.3),
            "ended",
        ]
        assert (ended.exit_code, ended.error, ended.lost) == (0, None, False)
        (started,) = session.of(order, AttemptStarted)
        assert started.time <= ended.time

        failing = session.start(**{"raise": "no luck", "reports": [1]})
        ended = await session.end_of(failing)
        assert ended.error is not None
        assert ended.error.splitlines()[-1].endswith("no luck")
        assert session.told(failing)[0] == ("intermediate", 0, 1)

        twice = session.start(final=1)
        session.executor.start_trial(twice)
        await session.end_of(twice)
        session.executor.start_trial(twice)
        after = session.start(final=2)
        await session.end_of(after)
        assert len(session.of(twice, AttemptEnded)) == 1

        never = tmp_path / "never"
        condemned = session.start(wait_for=str(never))
        await session.until(lambda: bool(session.of(condemned, AttemptStarted)))
        session.executor.stop_trial(condemned.trial_id, 1)
        session.executor.stop_trial(condemned.trial_id, 1)
        await session.end_of(condemned)
        session.executor.stop_trial(condemned.trial_id, 1)
        last = session.start(final=3)
        await session.end_of(last)
        assert len(session.of(condemned, AttemptEnded)) == 1


def test_attempts_report_in_order_fail_and_stop(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_attempts(bench, tmp_path))


async def check_slots(bench: Bench, tmp_path: Path) -> None:
    go, here = tmp_path / "go", tmp_path / "here"
    async with bench.session() as session:
        waiting = session.start(0, wait_for=str(go), final=1)
        other = session.start(1, touch=str(here), final=2)
        await session.end_of(other)
        assert not session.of(waiting, AttemptEnded)
        go.touch()
        await session.end_of(waiting)
        assert session.told(waiting)[-2:] == [("final", 0, 1), "ended"]


def test_slots_run_side_by_side(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_slots(bench, tmp_path))


async def check_attach(bench: Bench, tmp_path: Path) -> None:
    """A manager that was killed leaves its agents; the next one finds them and misses nothing."""
    go = tmp_path / "go"
    old = Session(bench.executor(), bench.setup())
    await old.open()
    old.acknowledging = False  # it is killed before it commits
    order = old.start(reports=[0.1], wait_for=str(go), final=0.2)
    unheard = old.order(1, final=0.5)  # committed, and never sent
    await old.until(lambda: bool(old.of(order, AttemptStarted)))
    pids = {event.pid for event in old.of(order, AttemptStarted)}
    async with bench.session() as new:
        await new.executor.attach([order, unheard])
        go.touch()
        await new.end_of(order)
        await new.end_of(unheard)
        assert new.told(order)[0] == ("intermediate", 0, 0.1)
        assert new.told(order)[-2:] == [("final", 0, 0.2), "ended"]
        sequences = dict.fromkeys(told[1] for told in new.told(order) if told[0] == "intermediate")
        assert list(sequences) == list(range(len(sequences)))
        assert {event.pid for event in new.of(order, AttemptStarted)} == pids


def test_next_manager_finds_what_runs(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_attach(bench, tmp_path))


async def check_idle_agents(bench: Bench) -> None:
    old = Session(bench.executor(), bench.setup())
    await old.open()
    done = old.start(final=1)
    await old.end_of(done)
    (first,) = old.of(done, AttemptStarted)
    async with bench.session() as new:  # the old manager was killed: it ends nothing
        new.order()  # a trial of its own
        order = new.start(final=2)
        assert (order.agent, order.trial_id == done.trial_id) == (done.agent, False)
        await new.end_of(order)
        (second,) = new.of(order, AttemptStarted)
        assert second.pid == first.pid


def test_next_manager_takes_up_an_agent_that_waits(real_bench: Bench) -> None:
    asyncio.run(check_idle_agents(real_bench))


async def check_pause(bench: Bench, tmp_path: Path) -> None:
    async with bench.session() as session:
        order = session.start(count_to=6, until=str(tmp_path / "go"), final="done")
        await session.until(lambda: len(session.of(order, Reported)) >= 3)
        session.executor.pause_trial(order.trial_id, 1)
        session.executor.pause_trial(order.trial_id, 1)
        ended = await session.end_of(order)
        assert ended.paused
        assert session.told(order)[-1] == "ended"
        saved = session.of(order, CheckpointSaved)[-1]
        assert saved.sequence >= 1

        (tmp_path / "go").touch()
        session.events.clear()
        again = replace(
            order,
            attempt=2,
            first_sequence=saved.sequence,
            checkpoint=f"trials/{order.sequence_id}/checkpoints/{saved.name}",
        )
        session.executor.start_trial(again)
        ended = await session.end_of(again)
        assert (ended.paused, ended.attempt, ended.error) == (False, 2, None)
        told = session.told(again)
        assert [item[1] for item in told[:-2]] == list(range(saved.sequence, saved.sequence + len(told) - 2))
        assert told[-3:] == [("intermediate", told[-3][1], 5), ("final", 0, "done"), "ended"]


def test_paused_attempt_goes_on_from_its_checkpoint_as_the_next(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_pause(bench, tmp_path))


async def check_lost_checkpoint(bench: Bench) -> None:
    async with bench.session() as session:
        order = replace(session.order(count_to=3), checkpoint="trials/1/checkpoints/1-1", first_sequence=1)
        session.executor.start_trial(order)
        ended = await session.end_of(order)
        assert is_checkpoint_gone(ended.error)
        assert session.of(order, Reported) == []


def test_attempt_whose_checkpoint_is_gone_does_not_start_from_nothing(real_bench: Bench) -> None:
    asyncio.run(check_lost_checkpoint(real_bench))


async def check_stop_of_a_pausing(bench: Bench, tmp_path: Path) -> None:
    """A pause that does not come to pass (a function that never reports) does not save a trial from its end."""
    async with bench.session(grace=0.2) as session:
        order = session.start(wait_for=str(tmp_path / "never"))
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        session.executor.pause_trial(order.trial_id, 1)
        session.executor.stop_trial(order.trial_id, 1)
        await session.end_of(order)
        session.executor.pause_trial(order.trial_id, 1)  # of one that has ended: nothing happens
        last = session.start(final=1)
        await session.end_of(last)
        assert len(session.of(order, AttemptEnded)) == 1


def test_pausing_attempt_can_be_stopped(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_stop_of_a_pausing(bench, tmp_path))


# --------------------------------------------------------------------------- what real agents promise besides


async def check_lost_agent(bench: Bench, tmp_path: Path) -> None:
    async with bench.session() as session:
        session.acknowledging = False  # most of what the trial reports is never asked for
        order = session.start(reports=[0.1, 0.2], wait_for=str(tmp_path / "never"))
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        (started,) = session.of(order, AttemptStarted)
        spool = bench.folder / "agents" / f"{order.agent}.jsonl"
        async with asyncio.timeout(PATIENCE):
            while not spool.exists() or len(spool.read_text().splitlines()) < 10:
                await asyncio.sleep(0.01)
        os.kill(started.pid, signal.SIGKILL)
        ended = await session.end_of(order)
        assert ended.lost
        told = session.told(order)
        assert told[-1] == "ended"
        # Every line that was written was delivered before the end; some twice, under the same number.
        lines = spool.read_text().splitlines()
        assert [item[1] for item in dict.fromkeys(told[:-1])] == list(range(len(lines)))


def test_killed_agent_loses_no_report(real_bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_lost_agent(real_bench, tmp_path))


async def check_forgotten(bench: Bench) -> None:
    """A spool holds results of an attempt with the same trial id and number; the store has forgotten that trial."""
    older = {"trial": "T0001", "attempt": 1, "mark": "a"}
    lines = [{**older, "final": 9}, {**older, "ended": {"exit_code": 0, "time": 1.0}}]
    spool = bench.folder / "agents" / "0-0.jsonl"
    spool.write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with bench.session() as session:
        order = replace(session.order(final=0.5), mark="b")
        await session.executor.attach([order])
        await session.end_of(order)
        assert session.told(order) == [("final", 0, 0.5), "ended"]


def test_spool_of_a_forgotten_trial_is_not_taken_for_that_of_another(real_bench: Bench) -> None:
    asyncio.run(check_forgotten(real_bench))


async def check_old_news(bench: Bench, tmp_path: Path) -> None:
    go = tmp_path / "go"
    old = Session(bench.executor(), bench.setup())
    await old.open()
    old.acknowledging = False  # killed after a commit, before the agent heard of it
    done = old.start(final=0.1)
    running = old.start(wait_for=str(go), final=0.2)
    await old.until(lambda: bool(old.of(done, AttemptStarted)))
    async with bench.session() as new:
        await new.executor.attach([running])
        go.touch()
        await new.end_of(running)
        assert new.of(done, AttemptEnded, Reported) == []


def test_what_ended_before_a_restart_is_not_told_again(bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_old_news(bench, tmp_path))


async def check_unresponsive(bench: Bench) -> None:
    def deaf(parameters: dict[str, Any]) -> None:
        import time

        from pitchpipe import report_intermediate_result

        report_intermediate_result(0)
        time.sleep(3600)

    deaf.__module__ = "__main__"
    (bench.folder / "trial.pkl").write_bytes(cloudpickle.dumps(deaf))
    async with bench.session(grace=0.2) as session:
        order = session.start()
        await session.until(lambda: bool(session.of(order, Reported)))
        session.executor.stop_trial(order.trial_id, 1)
        ended = await session.end_of(order)
        assert ended.lost


def test_function_that_never_reports_is_ended_with_its_agent(real_bench: Bench) -> None:
    asyncio.run(check_unresponsive(real_bench))


# --------------------------------------------------------------------------- agents that fall silent


@pytest.fixture
def hasty_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspects an agent of this machine after 0.3 s and gives it up after 1.5 s."""
    monkeypatch.setattr("pitchpipe.executors.socket_link.SUSPECT_AFTER", 0.3)
    bench = Bench("local", tmp_path / "exp")
    bench.agent_timeout = 1.5
    return bench


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has reached all threads of a process (Linux)."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


async def run_to_silence(session: Session, never: Path) -> tuple[AttemptOrder, int]:
    """An attempt whose agent was stopped while it reported, and that agent."""
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


def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    asyncio.run(check_frozen(hasty_bench, tmp_path / "never"))


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


def test_suspected_agent_that_is_heard_of_again_goes_on(hasty_bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_thawed(hasty_bench, tmp_path / "go"))


async def check_late(bench: Bench, go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kill does not reach the agent: it wakes up, finishes its trial, and tells what came of it."""

    async def cannot_tell(link: LocalAgentLink, reason: str) -> str:
        return reason

    monkeypatch.setattr(LocalAgentLink, "kill", lambda link: None)
    monkeypatch.setattr(LocalAgentLink, "why_lost", cannot_tell)
    async with bench.session() as session:
        order, pid = await run_to_silence(session, go)
        assert (await session.end_of(order)).lost
        told = list(session.events)
        go.touch()
        os.kill(pid, signal.SIGCONT)
        spool = bench.folder / "agents" / f"{order.agent}.jsonl"
        async with asyncio.timeout(PATIENCE):
            while '"ended"' not in spool.read_text():
                await asyncio.sleep(0.01)
        after = session.start(1, final=2)
        await session.end_of(after)
        new = [event for event in session.events if event not in told]
        assert [event for event in new if not isinstance(event, AgentSilent)] == session.of(
            after, AttemptStarted, Reported, AttemptEnded
        )
        assert lives(pid)
    assert not lives(pid)  # the end of the experiment ends it, too


def test_results_of_an_agent_that_was_given_up_are_not_taken_and_it_is_ended(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(check_late(hasty_bench, tmp_path / "go", monkeypatch))


async def check_frozen_stranger(bench: Bench, never: Path) -> None:
    # The earlier manager still runs in this process; it must not give the agent up before the next one does.
    old = Session(bench.executor(), replace(bench.setup(), agent_timeout=3600.0))
    await old.open()
    order, pid = await run_to_silence(old, never)
    async with bench.session() as new:
        await new.executor.attach([order])
        ended = await new.end_of(order)
        assert ended.lost
        assert ended.error == "its agent gave no sign of life for 1.5 s"
        assert not lives(pid)


def test_next_manager_gives_up_an_agent_that_does_not_answer(hasty_bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_frozen_stranger(hasty_bench, tmp_path / "never"))


async def check_many_managers(bench: Bench, never: Path) -> None:
    """Each of them was killed when it had just knocked; the last ends the experiment."""
    bench.agent_timeout = 60.0
    old = Session(bench.executor(), bench.setup())
    await old.open()
    _, pid = await run_to_silence(old, never)
    executor = old.executor
    assert isinstance(executor, LocalTrialExecutor)
    path = next(executor._sockets.glob("*.sock"))
    for _ in range(10):  # more than may wait in line
        assert is_listened_to(path)
    async with asyncio.timeout(PATIENCE), bench.session(grace=0.0):
        pass
    assert not lives(pid)


def test_agent_that_answers_nobody_keeps_no_manager_waiting(hasty_bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_many_managers(hasty_bench, tmp_path / "never"))


async def check_frozen_idle(bench: Bench) -> None:
    async with bench.session() as session:
        order = session.start(final=1)
        await session.end_of(order)
        (started,) = session.of(order, AttemptStarted)
        os.kill(started.pid, signal.SIGSTOP)
        await session.until(lambda: any(isinstance(event, AgentLost) for event in session.events))
        assert session.events[-1].agent == order.agent  # type: ignore[union-attr]
        assert not lives(started.pid)


def test_idle_agent_that_is_silent_is_given_up_too(hasty_bench: Bench) -> None:
    asyncio.run(check_frozen_idle(hasty_bench))


async def check_command(bench: Bench, tmp_path: Path) -> list[int]:
    script = tmp_path / "trial.sh"
    script.write_text(
        'echo out; echo err >&2; sleep 600 & echo $! > "$1"; '
        """echo '{"intermediate": 0.5}' >> "$PITCHPIPE_REPORTS"; wait"""
    )
    child = tmp_path / "child.pid"
    async with bench.session(
        kind="command",
        command=f"sh {script} {child}",
        code_directory=str(tmp_path),
        environment={},
        shell=True,
    ) as session:
        order = session.start()
        await session.until(lambda: bool(session.of(order, Reported)))
        (started,) = session.of(order, AttemptStarted)
        assert await session.executor.read_file(order, "stdout", 0, 100) == b"out\n"
        assert await session.executor.read_file(order, "stderr", 1, 2) == b"rr"
    return [started.pid, int(child.read_text())]


def lives(pid: int) -> bool:
    """Does the process still run? A killed one that nobody has reaped yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_close_leaves_nothing_running(real_bench: Bench, tmp_path: Path) -> None:
    pids = asyncio.run(check_command(real_bench, tmp_path))
    assert [pid for pid in pids if lives(pid)] == []


def test_request_that_can_never_be_met_is_refused_in_words(real_bench: Bench) -> None:
    async def check() -> None:
        async with real_bench.session(Request(cpus=10_000)):
            pass

    with pytest.raises(ExecutorError, match="10000 CPU"):
        asyncio.run(check())


def test_agents_that_are_lost_are_told_unless_they_are_killed_on_purpose(
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor = LocalTrialExecutor()
    caplog.set_level("INFO", logger="pitchpipe")
    executor.on_lost("1-0", "its agent was killed by signal 9")
    executor.kill()
    executor.on_lost("2-0", "its agent ended with exit code 1")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "agent 1-0 is lost: killed by signal 9"),
        ("INFO", "agent 2-0 is lost: ended with exit code 1"),
    ]
