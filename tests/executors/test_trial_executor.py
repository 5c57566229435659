"""What every executor promises, whatever it runs trials on: one suite over all of them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.trial_executor import TrialExecutor
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, CheckpointSaved, Reported
from pitchpipe.runner.ledger import Request
from pitchpipe.runner.verdicts import is_checkpoint_gone
from pitchpipe.store.runtime_folder import RUNTIME_DIRECTORY_ENVIRONMENT

from ..forked_agents import fork_agents
from .bench import PATIENCE, Bench, Session, on
from .ray_support import eventually, forbid_sockets, lives

# Agents on Ray have sockets if they are on the manager's node, and are called otherwise.
KINDS = ("local", "ray", "ray, called", "simulated")


class Place(NamedTuple):
    """Where the session that tests share keeps its sockets: none if agents are called."""

    directory: Path
    has_sockets: bool

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        patch.setenv(RUNTIME_DIRECTORY_ENVIRONMENT, str(self.directory))
        fork_agents(patch)
        if not self.has_sockets:
            forbid_sockets(patch, self.directory)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """Return the loop of the sessions that tests share."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest,
    runner: asyncio.Runner,
    nursery: None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Session, Place]]:
    """Make a session for all tests that need no more than one: agents on Ray take a second to start."""
    kind = request.param.partition(",")[0]
    with (
        tempfile.TemporaryDirectory(prefix="pp-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        directory = request.getfixturevalue("ray_directory") if kind == "ray" else Path(folder)
        place = Place(directory, has_sockets=request.param != "ray, called")
        bench = Bench(kind, tmp_path_factory.mktemp("shared") / "exp")
        session = Session(bench.executor(), bench.setup(grace=0.2))
        place.enter(patch)
        runner.run(session.open())
        patch.undo()
        yield session, place
        place.enter(patch)
        runner.run(session.executor.close())


@pytest.fixture
def session(shared: tuple[Session, Place], monkeypatch: pytest.MonkeyPatch) -> Session:
    """Give a test the session, without the events of the test before."""
    session, place = shared
    place.enter(monkeypatch)
    session.events.clear()
    session.acknowledging = True
    return session


# --------------------------------------------------------------------------- the contract


@on("shared", *KINDS)
async def test_attempts_report_in_order_fail_and_stop(session: Session, tmp_path: Path) -> None:
    order = session.start(reports=[0.1, 0.2], final=0.3)
    ended = await session.end_of(order)
    assert session.outcome(order) == [
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
    assert session.outcome(failing)[0] == ("intermediate", 0, 1)

    twice = session.start(final=1)
    session.executor.start_trial(twice)
    await session.end_of(twice)
    session.executor.start_trial(twice)

    never = tmp_path / "never"
    stopped = session.start(wait_for=str(never))
    await session.started(stopped)
    session.executor.stop_trial(stopped.trial_id, 1)
    session.executor.stop_trial(stopped.trial_id, 1)
    await session.end_of(stopped)
    session.executor.stop_trial(stopped.trial_id, 1)
    await session.end_of(session.start(final=3))
    # An agent that learns first that its end is committed, and then of the start, has it read from the spool again.
    assert len(session.of(twice, AttemptStarted)) == len(session.of(stopped, AttemptEnded)) == 1


@on("shared", "local", "ray", "ray, called")
async def test_what_a_function_prints_is_in_its_trials_own_file(session: Session) -> None:
    orders = [session.start(print=text, final=1) for text in ("one", "two")]
    for order in orders:
        await session.end_of(order)
    folders = [session.setup.folder / "trials" / str(order.sequence_id) for order in orders]
    assert [(folder / "stdout").read_text() for folder in folders] == ["one\n", "two\n"]


@on("shared", *KINDS)
async def test_slots_run_side_by_side(session: Session, tmp_path: Path) -> None:
    go, here = tmp_path / "go", tmp_path / "here"
    waiting = session.start(0, wait_for=str(go), final=1)
    other = session.start(1, touch=str(here), final=2)
    await session.end_of(other)
    assert not session.of(waiting, AttemptEnded)
    go.touch()
    await session.end_of(waiting)
    assert session.outcome(waiting)[-2:] == [("final", 0, 1), "ended"]


@on("bench", *KINDS)
async def test_next_manager_finds_what_runs(bench: Bench, tmp_path: Path) -> None:
    """Leave agents as a killed manager does; the next manager finds them and misses nothing."""
    go = tmp_path / "go"
    old = await bench.killed()
    old.acknowledging = False  # it is killed before it commits
    order = old.start(reports=[0.1], wait_for=str(go), final=0.2)
    unheard = old.order(1, final=0.5)  # committed, and never sent
    pid = (await old.started(order)).pid
    async with bench.session() as new:
        await new.executor.attach([order, unheard])
        go.touch()
        await new.end_of(order)
        await new.end_of(unheard)
        await old.until_replaced()
        assert new.outcome(order)[0] == ("intermediate", 0, 0.1)
        assert new.outcome(order)[-2:] == [("final", 0, 0.2), "ended"]
        sequences = dict.fromkeys(item[1] for item in new.outcome(order) if item[0] == "intermediate")
        assert list(sequences) == list(range(len(sequences)))
        assert {event.pid for event in new.of(order, AttemptStarted)} == {pid}


@on("bench", "local", "ray")
async def test_next_manager_takes_up_an_agent_that_waits(bench: Bench) -> None:
    old = await bench.killed()
    done = old.start(final=1)
    await old.end_of(done)
    first = await old.started(done)
    async with bench.session() as new:  # the old manager was killed: it ends nothing
        new.order()  # a trial of its own
        order = new.start(final=2)
        assert (order.agent, order.trial_id == done.trial_id) == (done.agent, False)
        await new.end_of(order)
        await old.until_replaced()
        assert (await new.started(order)).pid == first.pid


@on("shared", *KINDS)
async def test_paused_attempt_continues_from_its_checkpoint_as_the_next(
    session: Session, tmp_path: Path
) -> None:
    order = session.start(count_to=6, until=str(tmp_path / "go"), final="done")
    await session.until(lambda: len(session.of(order, Reported)) >= 3)
    session.executor.pause_trial(order.trial_id, 1)
    session.executor.pause_trial(order.trial_id, 1)
    ended = await session.end_of(order)
    assert ended.paused
    assert session.outcome(order)[-1] == "ended"
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
    outcome = session.outcome(again)
    assert [item[1] for item in outcome[:-2]] == list(
        range(saved.sequence, saved.sequence + len(outcome) - 2)
    )
    assert outcome[-3:] == [("intermediate", outcome[-3][1], 5), ("final", 0, "done"), "ended"]


@on("shared", *KINDS[:3])
async def test_attempt_whose_checkpoint_is_gone_does_not_start_from_nothing(session: Session) -> None:
    order = replace(session.order(count_to=3), checkpoint="trials/99/checkpoints/1-1", first_sequence=1)
    session.executor.start_trial(order)
    ended = await session.end_of(order)
    assert is_checkpoint_gone(ended.error)
    assert session.of(order, Reported) == []


@on("shared", *KINDS)
async def test_pausing_attempt_can_be_stopped(session: Session, tmp_path: Path) -> None:
    """Stop a trial whose pause never takes effect (a function that never reports)."""
    order = session.start(wait_for=str(tmp_path / "never"))
    await session.started(order)
    session.executor.pause_trial(order.trial_id, 1)
    session.executor.stop_trial(order.trial_id, 1)
    await session.end_of(order)
    session.executor.pause_trial(order.trial_id, 1)  # of one that has ended: nothing happens
    await session.end_of(session.start(final=1))
    assert len(session.of(order, AttemptEnded)) == 1


# --------------------------------------------------------------------------- what real agents promise besides


@on("shared", *KINDS[:3])
async def test_function_that_never_reports_is_ended_with_its_agent(session: Session) -> None:
    order = session.start(reports=[0], sleep=3600)
    await session.until(lambda: bool(session.of(order, Reported)))
    session.executor.stop_trial(order.trial_id, 1)
    assert (await session.end_of(order)).lost


@on("shared", *KINDS[:3])
async def test_killed_agent_loses_no_report(session: Session, tmp_path: Path) -> None:
    session.acknowledging = False  # most of what the trial reports is never asked for
    order = session.start(2, reports=[0.1, 0.2], wait_for=str(tmp_path / "never"))  # its agent is a new one
    pid = (await session.started(order)).pid
    spool = session.setup.folder / "agents" / f"{order.agent}.jsonl"
    async with asyncio.timeout(PATIENCE):
        while not spool.exists() or len(spool.read_text().splitlines()) < 10:
            await asyncio.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    ended = await session.end_of(order)
    assert ended.lost
    *reports, end = session.outcome(order)
    assert end == "ended"
    # Every line that was written was delivered before the end; some twice, under the same number.
    lines = spool.read_text().splitlines()
    assert [item[1] for item in dict.fromkeys(reports)] == list(range(len(lines)))


@on("bench", "local", "ray")
async def test_spool_of_a_forgotten_trial_is_not_taken_for_that_of_another(bench: Bench) -> None:
    """Attach with a spool that has results of a forgotten trial with the same id and attempt number."""
    older = {"trial": "T0001", "attempt": 1, "mark": "a"}
    lines = [{**older, "final": 9}, {**older, "ended": {"exit_code": 0, "time": 1.0}}]
    spool = bench.folder / "agents" / "0-0.jsonl"
    spool.write_text("".join(json.dumps(line) + "\n" for line in lines))
    async with bench.session() as session:
        order = replace(session.order(final=0.5), mark="b")
        await session.executor.attach([order])
        await session.end_of(order)
        assert session.outcome(order) == [("final", 0, 0.5), "ended"]


@on("bench", "local", "ray", "simulated")
async def test_what_ended_before_a_restart_is_not_reported_again(bench: Bench, tmp_path: Path) -> None:
    go = tmp_path / "go"
    old = await bench.killed()
    old.acknowledging = False  # killed after a commit, before the agent heard of it
    done = old.start(final=0.1)
    running = old.start(wait_for=str(go), final=0.2)
    await old.started(done)
    async with bench.session() as new:
        await new.executor.attach([running])
        go.touch()
        await new.end_of(running)
        await old.until_replaced()
        assert new.of(done, AttemptEnded, Reported) == []


# --------------------------------------------------------------------------- a store older than its agents

RESULTS = [("intermediate", 0, 0.1), ("intermediate", 1, 0.2), ("final", 0, 0.3), "ended"]
REPORTING = """
echo '{"intermediate": 0.1}' >> $PITCHPIPE_REPORTS; echo '{"intermediate": 0.2}' >> $PITCHPIPE_REPORTS
while [ ! -e GO ]; do sleep 0.02; done
echo '{"final": 0.3}' >> $PITCHPIPE_REPORTS
"""


def reporting(kind: str, go: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return how trials run that report RESULTS, and their parameters; they end when `go` is there."""
    if kind == "command":
        return {"kind": "command", "command": REPORTING.replace("GO", str(go))}, {}
    return {}, {"reports": [0.1, 0.2], "wait_silently": str(go), "final": 0.3}


def each_once(outcome: Sequence[Any]) -> list[Any]:
    """Return an outcome as the runner counts it: a result that is delivered again changes nothing."""
    return list(dict.fromkeys(outcome))


@on("bench", ("local", "function"), ("local", "command"), ("ray", "function"), more=["kind"])
async def test_what_an_agent_has_forgotten_is_read_from_the_spool(
    bench: Bench, kind: str, tmp_path: Path
) -> None:
    """Lose the commits with the ends of two trials and the start of a third one; the agent lives."""
    go = tmp_path / "go"
    go.touch()
    run, parameters = reporting(kind, go)
    old = await bench.killed(**run)
    first, second = old.start(**parameters), old.order(**parameters)
    await old.end_of(first)
    old.executor.start_trial(second)
    await old.end_of(second)
    await old.end_of(old.start(**parameters))
    async with bench.session(**run) as new:
        await new.executor.attach([first])
        await new.end_of(first)
        assert each_once(new.outcome(first)) == RESULTS
        new.executor.start_trial(second)  # as the trial that waits in the older store
        assert not (await new.end_of(second)).lost
        assert each_once(new.outcome(second)) == RESULTS
        assert not new.of(second, AttemptStarted)  # it is not run a second time
        await old.until_replaced()


@on("bench", ("local", "function"), ("local", "command"), ("ray", "command"), more=["kind"])
async def test_results_of_a_running_attempt_that_were_acknowledged_are_read_from_the_spool(
    bench: Bench, kind: str, tmp_path: Path
) -> None:
    """Lose the commits with the first results of a running trial."""
    run, parameters = reporting(kind, tmp_path / "go")
    old = await bench.killed(**run)
    order = old.start(**parameters)
    await old.until(lambda: len(old.of(order, Reported)) == 2)
    await asyncio.sleep(0)  # they are acknowledged
    async with bench.session(**run) as new:
        await new.executor.attach([order])
        await new.until(lambda: len(new.of(order, Reported)) >= 2)
        (tmp_path / "go").touch()
        assert not (await new.end_of(order)).lost
        assert each_once(new.outcome(order)) == RESULTS
        await old.until_replaced()


@on(
    "bench",
    ("local", "function", True),
    ("local", "command", False),
    ("local", "command", True),
    ("ray", "function", True),
    more=["kind", "is_over"],
)
async def test_what_an_agent_of_the_same_name_has_run_is_read_from_the_spool(
    bench: Bench, kind: str, is_over: bool, tmp_path: Path
) -> None:
    """Lose the commits with the end of a trial and of its agent, while another agent of that name lives."""
    run, parameters = reporting(kind, tmp_path / "go")
    old = await bench.killed(**run)
    order = old.start(**parameters)
    await old.until(lambda: len(old.of(order, Reported)) == 2)
    if is_over:
        (tmp_path / "go").touch()
        await old.end_of(order)
    old.link_of(order).kill()
    await old.until(lambda: order.agent not in old.links)
    (tmp_path / "go").touch()
    other = old.start(**parameters)
    await old.end_of(other)
    async with bench.session(**run) as new:
        await new.executor.attach([order])
        assert (await new.end_of(order)).lost is not is_over
        assert each_once(new.outcome(order)) == (RESULTS if is_over else [*RESULTS[:2], "ended"])
        assert not new.of(order, AttemptStarted)  # it is not run a second time
        await old.until_replaced()


@on("bench", ("local", "function"), ("local", "command"), more=["kind"])
async def test_first_run_of_an_attempt_that_the_store_forgot_does_not_count(
    bench: Bench, kind: str, tmp_path: Path
) -> None:
    """Lose the commit with the start of a trial, and its agent; then lose the agent that runs it again."""
    run, parameters = reporting(kind, tmp_path / "go")
    async with bench.session(**run) as session:
        order = session.start(**parameters)
        for count in (1, 2):
            await session.until(lambda: len(session.of(order, Reported)) == 2)
            session.link_of(order).kill()
            await session.until(lambda: bool(session.of(order, AttemptEnded)))
            assert each_once(session.outcome(order)) == [*RESULTS[:2], "ended"], count
            session.events.clear()
            session.executor.start_trial(order)  # as the trial that waits in the older store


@on(
    "bench",
    ("local", "function", False),
    ("local", "function", True),
    ("local", "command", False),
    ("local", "command", True),
    ("ray, called", "function", False),
    more=["kind", "is_over"],
)
async def test_attempt_whose_reports_are_not_in_the_folder_that_was_put_back_is_lost(
    bench: Bench, kind: str, is_over: bool, tmp_path: Path
) -> None:
    """Put the whole folder back, with spools that hold nothing of what the agent did."""
    run, parameters = reporting(kind, tmp_path / "go")
    copy = tmp_path / "copy"
    shutil.copytree(bench.folder, copy)
    old = await bench.killed(**run)
    order = old.start(**parameters)
    await old.until(lambda: len(old.of(order, Reported)) == 2)
    if is_over:
        (tmp_path / "go").touch()
        await old.end_of(order)
        old.start(**parameters)
        await old.until(lambda: old.events[-1] is not old.of(order, AttemptEnded)[0])
    bench.folder.rename(tmp_path / "damaged")
    copy.rename(bench.folder)
    async with bench.session(**run) as new:
        await new.executor.attach([order])
        assert (await new.end_of(order)).lost  # it runs again
        assert new.of(order, Reported) == []
        (tmp_path / "go").touch()
        again = replace(order, attempt=2, agent="0-1")
        new.executor.start_trial(again)
        await new.until(lambda: len(new.of(order, AttemptEnded)) == 2)
        assert new.outcome(order)[1:] == RESULTS
        await old.until_replaced()


@on("bench", *KINDS[:3])
async def test_agent_that_runs_what_the_store_has_forgotten_is_ended(bench: Bench, tmp_path: Path) -> None:
    """Let the agent of a known trial, and another agent, run what the older store does not know."""
    old = await bench.killed()
    known = old.start(reports=[0.1], final=0.2)
    await old.end_of(known)
    unknown = [old.start(slot, wait_for=str(tmp_path / "never")) for slot in (0, 1)]
    await old.until(lambda: all(old.of(order, Reported) for order in unknown))
    pids = [old.of(order, AttemptStarted)[0].pid for order in unknown]
    async with bench.session() as new:
        await new.executor.attach([known])
        await new.end_of(known)
        assert each_once(new.outcome(known)) == [("intermediate", 0, 0.1), ("final", 0, 0.2), "ended"]
        await asyncio.to_thread(eventually, lambda: not any(map(lives, pids)))
        assert not any(new.of(order, Reported, AttemptEnded) for order in unknown)
        await old.until_replaced()


@on("bench", "local", "ray")
async def test_close_leaves_nothing_running(bench: Bench, tmp_path: Path) -> None:
    child = tmp_path / "child.pid"
    script = f"echo out; echo err >&2; sleep 600 & echo $! > {child}; "
    script += """echo '{"intermediate": 0.5}' >> "$PITCHPIPE_REPORTS"; wait"""
    async with bench.session(kind="command", command=script, code_directory=str(tmp_path)) as session:
        order = session.start()
        await session.until(lambda: bool(session.of(order, Reported)))
        started = await session.started(order)
        assert await session.executor.read_file(order, "stdout", 0, 100) == b"out\n"
        assert await session.executor.read_file(order, "stderr", 1, 2) == b"rr"
    assert [pid for pid in (started.pid, int(child.read_text())) if lives(pid)] == []


@on("bench", "local")
async def test_request_that_can_never_be_met_is_refused_in_words(bench: Bench) -> None:
    with pytest.raises(ExecutorError, match="10000 CPU"):
        async with bench.session(Request(cpus=10_000)):
            pass


def test_executor_that_cannot_pause_stops_the_attempt() -> None:
    stopped: list[tuple[str, int]] = []
    executor: Any = SimpleNamespace(stop_trial=lambda *attempt: stopped.append(attempt))
    TrialExecutor.pause_trial(executor, "T0", 2)
    assert stopped == [("T0", 2)]
