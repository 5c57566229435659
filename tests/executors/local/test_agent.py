"""Agents of this machine that are frozen, lost or late: what they and their trials still do does not count."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pitchpipe.executors.local.agent import LocalAgentLink
from pitchpipe.executors.local.executor import LocalTrialExecutor
from pitchpipe.executors.local.gpu_claims import is_listened_to
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.events import AgentLost, AttemptEnded, AttemptStarted, Reported

from ..bench import PATIENCE, Bench, Session, check_frozen, check_late, check_thawed, run_to_silence
from ..ray_support import lives


@pytest.fixture
def bench(forked_agents: None, tmp_path: Path) -> Bench:
    return Bench("local", tmp_path / "exp")


@pytest.fixture
def hasty_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspects an agent of this machine after 0.3 s and gives it up after 1.5 s."""
    monkeypatch.setattr("pitchpipe.executors.socket_link.SUSPECT_AFTER", 0.3)
    bench = Bench("local", tmp_path / "exp")
    bench.agent_timeout = 1.5
    return bench


async def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    await check_frozen(hasty_bench, tmp_path / "never")


async def test_suspected_agent_that_gives_a_sign_of_life_continues(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    await check_thawed(hasty_bench, tmp_path / "go")


def test_results_of_an_agent_that_was_given_up_are_not_taken_and_it_is_ended(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def same(link: LocalAgentLink, reason: str) -> str:
        return reason

    monkeypatch.setattr(LocalAgentLink, "kill", lambda link: None)
    monkeypatch.setattr(LocalAgentLink, "why_lost", same)
    pid = asyncio.run(check_late(hasty_bench, tmp_path / "go"))
    assert not lives(pid)  # the end of the experiment ends it, too


async def test_next_manager_gives_up_an_agent_that_does_not_answer(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    # The earlier manager still runs in this process; it must not give the agent up before the next one does.
    old = Session(hasty_bench.executor(), replace(hasty_bench.setup(), agent_timeout=3600.0))
    await old.open()
    order, pid = await run_to_silence(old, tmp_path / "never")
    async with hasty_bench.session() as new:
        await new.executor.attach([order])
        ended = await new.end_of(order)
        assert ended.lost
        assert ended.error == "its agent gave no sign of life for 1.5 s"
        assert not lives(pid)
        await old.until_replaced()  # and has reaped its child


async def test_agent_that_never_replies_keeps_no_manager_waiting(hasty_bench: Bench, tmp_path: Path) -> None:
    """Each of them was killed when it had just knocked; the last ends the experiment."""
    hasty_bench.agent_timeout = 60.0
    old = Session(hasty_bench.executor(), hasty_bench.setup())
    await old.open()
    _, pid = await run_to_silence(old, tmp_path / "never")
    path = next(agent_sockets(hasty_bench.folder).glob("*.sock"))
    for _ in range(10):  # more than may wait in line
        assert is_listened_to(path)
    async with asyncio.timeout(PATIENCE), hasty_bench.session(grace=0.0):
        pass
    assert not lives(pid)
    await old.until_replaced()  # and has reaped its child


async def test_idle_agent_that_is_silent_is_given_up_too(hasty_bench: Bench) -> None:
    async with hasty_bench.session() as session:
        order = session.start(final=1)
        await session.end_of(order)
        (started,) = session.of(order, AttemptStarted)
        os.kill(started.pid, signal.SIGSTOP)
        await session.until(lambda: any(isinstance(event, AgentLost) for event in session.events))
        assert session.events[-1].agent == order.agent  # type: ignore[union-attr]
        assert not lives(started.pid)


# --------------------------------------------------------------------------- connections that break


def link_of(session: Session, order: AttemptOrder) -> LocalAgentLink:
    assert isinstance(session.executor, LocalTrialExecutor)
    link = session.executor._links[order.agent]
    assert isinstance(link, LocalAgentLink)
    return link


COUNTING = """
for number in 0 1 2 3; do echo "{\\"intermediate\\": $number}" >> $PITCHPIPE_REPORTS; done
while [ ! -e GO ]; do sleep 0.02; done
for number in 4 5 6 7; do echo "{\\"intermediate\\": $number}" >> $PITCHPIPE_REPORTS; done
echo '{"final": 8}' >> $PITCHPIPE_REPORTS
"""


def pid_of(link: LocalAgentLink) -> int:
    assert link._process is not None
    return link._process.pid


def abort(link: LocalAgentLink) -> None:
    assert link._transport is not None
    link._transport.abort()


def reset(link: LocalAgentLink) -> None:
    """Let the next write fail, as with ECONNRESET."""
    assert link._transport is not None
    link._transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    link.poll(0)
    link.flush()


def lose_what_is_sent(link: LocalAgentLink) -> None:
    transport = link._transport
    assert transport is not None
    link._transport = cast(
        asyncio.Transport, SimpleNamespace(write=lambda data: None, is_closing=lambda: False)
    )
    asyncio.get_running_loop().call_later(0.1, transport.abort)


@pytest.mark.parametrize("break_it", [abort, reset, lose_what_is_sent])
async def test_connection_that_breaks_is_made_again_and_nothing_is_lost_or_done_twice(
    bench: Bench, break_it: Callable[[LocalAgentLink], None], tmp_path: Path
) -> None:
    """Break the connection to an agent while its trial reports; the agent and the trial live."""
    run = {"kind": "command", "command": COUNTING.replace("GO", str(tmp_path / "go"))}
    async with bench.session(**run) as session:
        order = session.start()
        await session.until(lambda: len(session.of(order, Reported)) >= 2)
        break_it(link_of(session, order))
        (tmp_path / "go").touch()
        ended = await session.end_of(order)
        assert (ended.lost, ended.exit_code) == (False, 0)
        numbers = [("intermediate", number, number) for number in range(8)]
        assert list(dict.fromkeys(session.outcome(order))) == [*numbers, ("final", 0, 8), "ended"]
        (started,) = session.of(order, AttemptStarted)
        assert lives(pid_of(link_of(session, order)))
        after = session.start()
        await session.end_of(after)
        assert len(session.of(after, AttemptEnded)) == 1
        assert started.pid


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOBUFS, errno.EAGAIN, errno.ECONNRESET])
async def test_agent_that_cannot_be_reached_just_now_is_tried_again(
    bench: Bench, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [OSError(number, os.strerror(number))] * 2
    loop = asyncio.get_running_loop()
    connect = loop.create_unix_connection

    async def refuse(*arguments: Any, **options: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return await connect(*arguments, **options)

    monkeypatch.setattr(loop, "create_unix_connection", refuse)
    async with bench.session() as session:
        order = session.start(final=1)
        await session.end_of(order)
        assert session.outcome(order) == [("final", 0, 1), "ended"]
    assert not refusals


async def test_request_that_was_lost_with_the_connection_is_sent_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.session() as session:
        first = session.start(final=1)
        await session.end_of(first)
        transport = link_of(session, first)._transport
        assert transport is not None
        monkeypatch.setattr(transport, "write", lambda data: None)  # into the void
        order = session.start(wait_for=str(tmp_path / "never"))
        session.executor.stop_trial(order.trial_id, 1)
        transport.abort()
        ended = await session.end_of(order)
        assert (ended.lost, ended.killed) == (False, True)


async def test_trial_of_an_agent_that_cannot_be_reached_again_is_lost_and_not_killed(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent must not record that its trial was killed: the machine's trouble is not the user's error."""
    run = {"kind": "command", "command": "sleep 600"}
    async with bench.session(**run) as session:
        order = session.start()
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        link = link_of(session, order)
        monkeypatch.setattr(LocalAgentLink, "is_made_again", False)
        abort(link)
        ended = await session.end_of(order)
        assert (ended.lost, ended.signal) == (True, None)
        assert not lives(pid_of(link))


# --------------------------------------------------------------------------- a machine without room for threads


@pytest.mark.parametrize("kind", ["function", "command"])
async def test_agent_that_dies_while_no_thread_can_be_started_ends_its_trial(
    bench: Bench, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Any:
            raise RuntimeError("can't start new thread")

    run = {"kind": "command", "command": "sleep 600"} if kind == "command" else {}
    async with bench.session(**run) as session:
        order = session.start(wait_for=str(tmp_path / "never"))
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Full())
        (started,) = session.of(order, AttemptStarted)
        os.kill(pid_of(link_of(session, order)), signal.SIGKILL)
        assert (await session.end_of(order)).lost
        assert not lives(started.pid)


async def test_trial_ends_even_if_nothing_can_be_learned_about_its_lost_agent(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(link: LocalAgentLink, reason: str) -> str:
        raise MemoryError(reason)

    async with bench.session() as session:
        order = session.start(wait_for=str(tmp_path / "never"))
        await session.until(lambda: bool(session.of(order, AttemptStarted)))
        monkeypatch.setattr(LocalAgentLink, "why_lost", fail)
        process = link_of(session, order)._process
        assert process is not None
        process.kill()
        process.wait()
        ended = await session.end_of(order)
        assert (ended.lost, ended.error) == (True, "its agent is gone")
