"""Agents on the manager's node: their sockets, and calls in place of a socket that cannot be made or breaks."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from pitchpipe.executors.ray.link import NodeSocketLink
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.events import AttemptEnded, AttemptStarted, Reported
from pitchpipe.trial_agent import Hello, Kill, Ping, Start

from ..bench import Bench, Heard
from ..ray_support import connections

START = Start(trial="T1", attempt=1, sequence_id=0, parameters="{}")


async def test_request_is_kept_until_a_batch_shows_that_it_was_handled(tmp_path: Path) -> None:
    heard, path = Heard(), tmp_path / "nobody.sock"
    link = NodeSocketLink(
        agent="0-0", path=path, hello=Hello(), listener=heard, timeout=60.0, kill=lambda: None
    )
    link.send(START)
    link.poll(0)
    link.send(Ping())
    link.send(Kill("T1", 1))
    assert [type(request).__name__ for request in link.unhandled] == ["Start", "Poll", "Kill"]
    link.settle()
    assert link.unhandled == [Kill("T1", 1)]
    link.settle()
    assert link.unhandled == [Kill("T1", 1)]
    assert not await link.is_open()
    assert heard.events == []
    (reason,) = heard.losses
    assert reason.startswith("its agent cannot be reached")


async def test_agent_whose_socket_is_silent_is_killed_and_its_link_says_nothing_more(
    runtime_directory: Path,
) -> None:
    killed, heard = asyncio.Event(), Heard()

    def kill() -> None:
        killed.set()
        link.drop()

    with socket.socket(socket.AF_UNIX) as mute:
        path = runtime_directory / "mute.sock"
        mute.bind(str(path))
        mute.listen()
        link = NodeSocketLink(agent="0-0", path=path, hello=Hello(), listener=heard, timeout=0.3, kill=kill)
        assert not await link.is_open()
        assert killed.is_set()
    assert (heard.events, heard.losses) == ([], [])


# --------------------------------------------------------------------------- with a real actor


@pytest.mark.ray
async def test_agent_whose_socket_cannot_be_reached_is_called(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that shares the host name, but not the folder of the sockets."""
    make = NodeSocketLink.__init__

    def elsewhere(link: NodeSocketLink, **options) -> None:
        make(link, **{**options, "path": Path("/no/such/folder/s.sock")})

    monkeypatch.setattr(NodeSocketLink, "__init__", elsewhere)
    async with bench.session() as session:
        assert await session.outcome_of(final=2) == [("final", 0, 2), "ended"]


@pytest.mark.ray
async def test_socket_is_private_and_replaced_by_calls_when_it_breaks_and_nothing_is_lost(
    bench: Bench, tmp_path: Path
) -> None:
    go, sockets = tmp_path / "go", agent_sockets(bench.folder)
    async with bench.session() as session:
        order = session.start(reports=[0.5], wait_for=str(go), final=2)
        await session.until(lambda: len(session.of(order, Reported)) >= 3)
        started = await session.started(order)
        assert connections(started.pid, sockets) == 2  # it listens, and has accepted the manager
        assert sockets.stat().st_mode & 0o777 == 0o700
        assert list(sockets.iterdir()) == []
        session.link_of(order)._node_socket._transport.abort()
        before = len(session.of(order, Reported))
        await session.until(lambda: len(session.of(order, Reported)) >= before + 3)
        assert connections(started.pid, sockets) == 1  # it listens still
        go.touch()
        await session.end_of(order)
        sequences = [event.sequence for event in session.of(order, Reported)[:-1]]
        assert sequences == list(range(len(sequences)))
        after = session.start(final=3)
        await session.end_of(after)
        assert session.outcome(after) == [("final", 0, 3), "ended"]
        assert [event.pid for event in session.of(after, AttemptStarted)] == [started.pid]
        assert len(session.of(order, AttemptEnded)) == 1
    assert not sockets.exists()


@pytest.mark.ray
async def test_request_that_did_not_get_through_a_socket_is_sent_by_a_call(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.session() as session:
        first = session.start(final=1)
        await session.end_of(first)
        node_socket = session.link_of(first)._node_socket
        monkeypatch.setattr(node_socket._transport, "write", lambda data: None)  # into the void
        order = session.start(wait_for=str(tmp_path / "never"))
        session.executor.stop_trial(order.trial_id, 1)
        node_socket._transport.abort()
        ended = await session.end_of(order)
        assert not ended.lost
        assert ended.killed
