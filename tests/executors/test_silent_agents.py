"""Agents that fall silent: they are suspected, then given up, and what they say later does not count."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from pitchpipe.executors.local.gpu_claims import is_listened_to
from pitchpipe.executors.local.local_executor import LocalAgentLink
from pitchpipe.executors.ray.agent_files import AgentFiles
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AgentLost, AgentSilent, AttemptEnded, AttemptStarted, Reported

from .bench import PATIENCE, Bench, Session, on
from .ray_support import connections, eventually, lives

LOCAL = "local, apart"  # not forked: this process reaps agents


@pytest.fixture
def hasty(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspect an agent after 0.3 s, give it up after 1.5 s."""
    for module in ("ray.link", "socket_link"):
        monkeypatch.setattr(f"pitchpipe.executors.{module}.SUSPECT_AFTER", 0.3)
    bench.agent_timeout = 1.5
    return bench


def is_stopped(pid: int) -> bool:
    """Return whether SIGSTOP has reached all threads of a process (Linux)."""
    states = [
        path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}


async def run_to_silence(session: Session, file: Path) -> tuple[AttemptOrder, int]:
    """Start an attempt that waits for a file, stop its agent (SIGSTOP) while it reports, and return both."""
    order = session.start(wait_for=str(file))
    await session.until(lambda: bool(session.of(order, Reported)))
    pid = (await session.started(order)).pid
    os.kill(pid, signal.SIGSTOP)
    while not is_stopped(pid):  # until then one of its threads may still answer
        await asyncio.sleep(0.001)
    return order, pid


def silences(session: Session) -> list[tuple[str, bool]]:
    return [(event.agent, event.is_over) for event in session.events if isinstance(event, AgentSilent)]


@on("bench", LOCAL, "ray", "ray, called")
async def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(
    hasty: Bench, tmp_path: Path
) -> None:
    async with hasty.session() as session:
        order, pid = await run_to_silence(session, tmp_path / "never")
        ended = await session.end_of(order)
        assert (ended.lost, ended.error) == (True, "its agent gave no sign of life for 1.5 s")
        assert (order.agent, False) in silences(session)
        assert not lives(pid)
        again = replace(order, attempt=2, agent="0-1", record='{"parameters": {"final": 1}}')
        session.executor.start_trial(again)
        await session.until(lambda: len(session.of(order, AttemptEnded)) == 2)
        assert not session.of(order, AttemptEnded)[-1].lost


@on("bench", LOCAL, "ray, called")
async def test_suspected_agent_that_gives_a_sign_of_life_continues(hasty: Bench, tmp_path: Path) -> None:
    hasty.agent_timeout = 60.0
    async with hasty.session() as session:
        order, pid = await run_to_silence(session, tmp_path / "go")
        await session.until(lambda: silences(session)[-1:] == [(order.agent, False)])
        (wait,) = session.executor.waits()
        assert (wait.what, wait.longest) == (f"agent {order.agent}, which gives no sign of life", 60.0)
        os.kill(pid, signal.SIGCONT)
        (tmp_path / "go").touch()
        assert not (await session.end_of(order)).lost
        assert (order.agent, True) in silences(session)
        assert list(session.executor.waits()) == []


@on("bench", LOCAL, "ray, called", "ray")
async def test_what_an_agent_says_that_was_given_up_out_of_reach_is_not_heard(
    hasty: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a broken network, the kill does not reach the agent; it finishes its trial and reports it, too late."""

    async def nothing(files: AgentFiles) -> None:
        del files

    async def same(link: LocalAgentLink, reason: str) -> str:
        return reason

    for link in (RayLink, LocalAgentLink):
        monkeypatch.setattr(link, "kill", lambda link: None)
    monkeypatch.setattr(AgentFiles, "sweep", nothing)
    monkeypatch.setattr(LocalAgentLink, "why_lost", same)
    async with hasty.session() as session:
        order, pid = await run_to_silence(session, tmp_path / "go")
        assert (await session.end_of(order)).lost
        before = list(session.events)
        (tmp_path / "go").touch()
        os.kill(pid, signal.SIGCONT)
        spool = hasty.folder / "agents" / f"{order.agent}.jsonl"
        async with asyncio.timeout(PATIENCE):
            while '"ended"' not in spool.read_text():
                await asyncio.sleep(0.01)
        hasty.agent_timeout = 60.0
        after = session.start(1, final=2)
        await session.end_of(after)
        new = [event for event in session.events if event not in before]
        assert [event for event in new if not isinstance(event, AgentSilent)] == session.of(
            after, AttemptStarted, Reported, AttemptEnded
        )
        assert lives(pid)
    await asyncio.to_thread(eventually, lambda: not lives(pid))  # the end of the experiment ends it


@on("bench", LOCAL, "ray")
async def test_next_manager_gives_up_an_agent_that_does_not_answer(hasty: Bench, tmp_path: Path) -> None:
    hasty.agent_timeout = (
        60.0  # the earlier manager, in this process, must not give it up before the next one
    )
    old = await hasty.killed()
    order, pid = await run_to_silence(old, tmp_path / "never")
    hasty.agent_timeout = 1.5
    async with hasty.session() as new:
        await new.executor.attach([order])
        ended = await new.end_of(order)
        assert (ended.lost, ended.error) == (True, "its agent gave no sign of life for 1.5 s")
        await old.until_replaced()  # and has reaped its child
    await asyncio.to_thread(eventually, lambda: not lives(pid))


@on("bench", LOCAL)
async def test_agent_that_never_replies_keeps_no_manager_waiting(hasty: Bench, tmp_path: Path) -> None:
    """Each of them was killed when it had just knocked; the last ends the experiment."""
    hasty.agent_timeout = 60.0
    old = await hasty.killed()
    _, pid = await run_to_silence(old, tmp_path / "never")
    path = next(agent_sockets(hasty.folder).glob("*.sock"))
    for _ in range(10):  # more than may wait in line
        assert is_listened_to(path)
    async with asyncio.timeout(PATIENCE), hasty.session(grace=0.0):
        pass
    assert not lives(pid)
    await old.until_replaced()  # and has reaped its child


@on("bench", LOCAL)
async def test_idle_agent_that_is_silent_is_given_up_too(hasty: Bench) -> None:
    async with hasty.session() as session:
        order = session.start(final=1)
        await session.end_of(order)
        pid = (await session.started(order)).pid
        os.kill(pid, signal.SIGSTOP)
        await session.until(lambda: any(isinstance(event, AgentLost) for event in session.events))
        assert session.events[-1].agent == order.agent  # type: ignore[union-attr]
        assert not lives(pid)


@on("bench", "ray, called")
async def test_closed_link_makes_no_call_even_if_its_agent_does_not_end(
    hasty: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor leaves Ray next, and Ray ends a process that makes a call after that."""
    monkeypatch.setattr("pitchpipe.executors.ray.link.kill_actor", lambda actor: None)
    for patience in ("_SHUTDOWN_MARGIN", "_KILL_TIMEOUT"):
        monkeypatch.setattr(f"pitchpipe.executors.ray.link.{patience}", 0.1)
    hasty.agent_timeout = 60.0
    async with hasty.session() as session:
        order, pid = await run_to_silence(session, tmp_path / "never")
        link = session.link_of(order)
        assert connections(pid, Path("/")) == 0
        await link.close(0.0)
        assert (link.is_connected, link._heartbeat._timer) == (False, None)
        os.kill(pid, signal.SIGKILL)
