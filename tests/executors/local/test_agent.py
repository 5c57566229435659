"""Agents of this machine that are frozen, lost or late: what they and their trials still do does not count."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from pitchpipe.executors.local.agent import LocalAgentLink
from pitchpipe.executors.local.gpu_claims import is_listened_to
from pitchpipe.executors.socket_link import agent_sockets
from pitchpipe.runner.events import AgentLost, AttemptStarted

from ..bench import PATIENCE, Bench, Session, check_frozen, check_late, check_thawed, run_to_silence
from ..ray_support import lives


@pytest.fixture
def hasty_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspects an agent of this machine after 0.3 s and gives it up after 1.5 s."""
    monkeypatch.setattr("pitchpipe.executors.socket_link.SUSPECT_AFTER", 0.3)
    bench = Bench("local", tmp_path / "exp")
    bench.agent_timeout = 1.5
    return bench


def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    asyncio.run(check_frozen(hasty_bench, tmp_path / "never"))


def test_suspected_agent_that_gives_a_sign_of_life_continues(hasty_bench: Bench, tmp_path: Path) -> None:
    asyncio.run(check_thawed(hasty_bench, tmp_path / "go"))


def test_results_of_an_agent_that_was_given_up_are_not_taken_and_it_is_ended(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def same(link: LocalAgentLink, reason: str) -> str:
        return reason

    monkeypatch.setattr(LocalAgentLink, "kill", lambda link: None)
    monkeypatch.setattr(LocalAgentLink, "why_lost", same)
    pid = asyncio.run(check_late(hasty_bench, tmp_path / "go"))
    assert not lives(pid)  # the end of the experiment ends it, too


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
    path = next(agent_sockets(bench.folder).glob("*.sock"))
    for _ in range(10):  # more than may wait in line
        assert is_listened_to(path)
    async with asyncio.timeout(PATIENCE), bench.session(grace=0.0):
        pass
    assert not lives(pid)


def test_agent_that_never_replies_keeps_no_manager_waiting(hasty_bench: Bench, tmp_path: Path) -> None:
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
