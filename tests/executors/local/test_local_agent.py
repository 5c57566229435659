"""Agents of this machine whose connections break, or that die: nothing is lost or done twice."""

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
from typing import Any

import pytest

from pitchpipe.executors.local.local_executor import LocalAgentLink
from pitchpipe.executors.running_attempts import spool_path
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.events import AttemptEnded, Reported

from ..bench import Bench
from ..ray_support import lives


@pytest.fixture
def bench(forked_agents: None, tmp_path: Path) -> Bench:
    return Bench("local", tmp_path / "exp")


COUNTING = """
for number in 0 1 2 3; do echo "{\\"intermediate\\": $number}" >> $PITCHPIPE_REPORTS; done
while [ ! -e GO ]; do sleep 0.02; done
for number in 4 5 6 7; do echo "{\\"intermediate\\": $number}" >> $PITCHPIPE_REPORTS; done
echo '{"final": 8}' >> $PITCHPIPE_REPORTS
"""


def abort(link: Any) -> None:
    link._transport.abort()


def reset(link: Any) -> None:
    """Let the next write fail, as with ECONNRESET."""
    link._transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    link.poll(0)
    link.flush()


def lose_what_is_sent(link: Any) -> None:
    transport = link._transport
    link._transport = SimpleNamespace(write=lambda data: None, is_closing=lambda: False)
    asyncio.get_running_loop().call_later(0.1, transport.abort)


@pytest.mark.parametrize("break_it", [abort, reset, lose_what_is_sent])
async def test_connection_that_breaks_is_made_again_and_nothing_is_lost_or_done_twice(
    bench: Bench, break_it: Callable[[Any], None], tmp_path: Path
) -> None:
    """Break the connection to an agent while its trial reports; the agent and the trial live."""
    run = {"kind": "command", "command": COUNTING.replace("GO", str(tmp_path / "go"))}
    async with bench.session(**run) as session:
        order = session.start()
        await session.until(lambda: len(session.of(order, Reported)) >= 2)
        break_it(session.link_of(order))
        (tmp_path / "go").touch()
        ended = await session.end_of(order)
        assert (ended.lost, ended.exit_code) == (False, 0)
        numbers = [("intermediate", number, number) for number in range(8)]
        assert list(dict.fromkeys(session.outcome(order))) == [*numbers, ("final", 0, 8), "ended"]
        assert lives(session.link_of(order)._process.pid)
        after = session.start()
        await session.end_of(after)
        assert len(session.of(after, AttemptEnded)) == 1


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
        assert await session.outcome_of(final=1) == [("final", 0, 1), "ended"]
    assert not refusals


async def test_request_that_was_lost_with_the_connection_is_sent_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.session() as session:
        first = session.start(final=1)
        await session.end_of(first)
        transport = session.link_of(first)._transport
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
        await session.started(order)
        link = session.link_of(order)
        monkeypatch.setattr(LocalAgentLink, "is_made_again", False)
        abort(link)
        ended = await session.end_of(order)
        assert (ended.lost, ended.signal) == (True, None)
        assert not lives(link._process.pid)


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
        pid = (await session.started(order)).pid
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Full())
        session.link_of(order)._process.kill()
        assert (await session.end_of(order)).lost
        assert not lives(pid)


async def test_trial_ends_even_if_nothing_can_be_learned_about_its_lost_agent(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(link: LocalAgentLink, reason: str) -> str:
        raise MemoryError(reason)

    async with bench.session() as session:
        order = session.start(wait_for=str(tmp_path / "never"))
        await session.started(order)
        monkeypatch.setattr(LocalAgentLink, "why_lost", fail)
        process = session.link_of(order)._process
        process.kill()
        process.wait()
        ended = await session.end_of(order)
        assert (ended.lost, ended.error) == (True, "its agent is gone")


async def test_attempt_that_is_given_up_keeps_what_it_has_reported(bench: Bench, tmp_path: Path) -> None:
    """Stop an agent while its trial reports its final result, as a machine that hangs does."""
    run = {"kind": "command", "command": COUNTING.replace("GO", str(tmp_path / "go"))}
    async with bench.session(**run) as session:
        order = session.start()
        await session.until(lambda: len(session.of(order, Reported)) == 4)
        agent = session.link_of(order)._process
        os.kill(agent.pid, signal.SIGSTOP)
        (tmp_path / "go").touch()
        spool = spool_path(session.executor.setup, order)
        await session.until(lambda: '"final"' in spool.read_text())
        *reports, ended = session.executor.give_up([order, replace(order, attempt=2)], "hangs", 2e9)
        os.kill(agent.pid, signal.SIGCONT)
    others, mine = [[e for e in (*reports, ended) if e.attempt == each] for each in (2, 1)]
    assert [(type(event), event.error) for event in others] == [(AttemptEnded, "hangs")]
    assert [event.sequence for event in mine if isinstance(event, Reported)] == [*range(8), 0]
    assert (mine[-1].lost, mine[-1].error) == (True, "hangs")


async def test_agent_that_no_longer_listens_is_ended_before_its_trial_runs_elsewhere(tmp_path: Path) -> None:
    """An agent without a manager closes its socket first; a function that cannot be interrupted then computes on."""
    bench = Bench("local", tmp_path / "exp")
    old = await bench.killed()
    order = old.start(wait_for=str(tmp_path / "never"))
    started = await old.started(order)
    order, pid = replace(order, start_time=started.time), started.pid
    link = old.link_of(order)
    link.drop()  # as if the manager had been killed
    for path in agent_sockets(tmp_path / "exp").glob("*.sock"):
        path.unlink()
    async with bench.session() as new:
        await new.executor.attach([order])
        assert (await new.end_of(order)).lost
        assert not lives(pid)
    link._process.wait()
