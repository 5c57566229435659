"""Connections to agents that are still being made, frozen, or late."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.executors.agents import Listener
from pitchpipe.executors.ray.care import AgentCare
from pitchpipe.executors.ray.executor import RayTrialExecutor
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.executors.ray.near import NearLink
from pitchpipe.trial_agent import Ended, Event, Hello, Kill, Request, Start

from ..bench import Bench, Session, check_frozen, check_late, check_thawed, run_to_silence
from ..ray_support import connections, eventually, forbid_sockets, lives

START = Start(trial="T1", attempt=1, sequence_id=0, parameters="{}")
KILL = Kill("T1", 1)


class Events(Listener):
    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_batch(self, agent: str, events: Sequence[Event], cursor: int) -> None:
        self.events += events

    def on_silent(self, agent: str, is_silent: bool) -> None:
        raise AssertionError(is_silent)

    def on_lost(self, agent: str, reason: str) -> None:
        raise AssertionError(reason)


class Carefree(AgentCare):
    """An agent that sees the experiment's folder and leaves nothing behind."""

    def __init__(self) -> None:
        self.where = None


def heard(*requests: Request, new: bool) -> list[Event]:
    """Return the events of a connection to an agent that is never found."""

    async def check() -> list[Event]:
        events = Events()
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        link = RayLink(agent="0-0", finding=never, hello=Hello(), listener=events, care=Carefree(), new=new)
        for request in requests:
            link.send(request)
        await asyncio.sleep(0)
        never.cancel()
        return events.events

    return asyncio.run(check())


def test_trial_whose_agent_is_being_made_ends_when_it_is_stopped():
    (ended,) = heard(Hello(), START, KILL, KILL, new=True)
    assert isinstance(ended, Ended)
    assert (ended.trial, ended.attempt, ended.error) == ("T1", 1, "stopped before it had started")


def test_trial_that_an_earlier_manager_may_have_started_is_stopped_by_its_agent():
    assert heard(START, KILL, new=False) == []


def test_other_trial_is_not_taken_back():
    assert heard(START, Kill("T1", 2), new=True) == []


class Dropped(NearLink):
    def __init__(self) -> None:
        self._unhandled = []

    def drop(self) -> None:
        pass


async def test_lost_agent_is_not_called_when_its_socket_reports_its_end_later() -> None:
    """It would be called until the manager ends, and Ray ends a process that makes a call after it has left Ray."""
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    link = RayLink(agent="0-0", finding=never, hello=Hello(), listener=Events(), care=Carefree(), new=True)
    link._near, link._closing = Dropped(), True
    link.lose("its process has ended")
    link.on_lost("0-0", "its agent is gone")
    assert link._heartbeat._timer is None


# --------------------------------------------------------------------------- with a real actor


def by(*ways: str) -> pytest.MarkDecorator:
    """Repeat a test with agents that have sockets, and with agents that are called."""
    return pytest.mark.parametrize("way", ways)


@pytest.fixture
def hasty_bench(way: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Suspects an agent after 0.3 s and gives it up after 1.5 s."""
    if way == "calls":
        forbid_sockets(monkeypatch, tmp_path)
    for module in ("ray.link", "socket_link"):
        monkeypatch.setattr(f"pitchpipe.executors.{module}.SUSPECT_AFTER", 0.3)
    bench.agent_timeout = 1.5
    return bench


@pytest.mark.ray
@by("socket", "calls")
async def test_agent_that_is_silent_for_too_long_is_suspected_then_killed(hasty_bench: Bench, tmp_path: Path):
    await check_frozen(hasty_bench, tmp_path / "never")


@pytest.mark.ray
@by("calls")
async def test_suspected_agent_that_gives_a_sign_of_life_continues(hasty_bench: Bench, tmp_path: Path):
    await check_thawed(hasty_bench, tmp_path / "go")


@pytest.mark.ray
@by("socket")
async def test_next_manager_gives_up_an_agent_that_does_not_answer(
    hasty_bench: Bench, tmp_path: Path
) -> None:
    hasty_bench.agent_timeout = 60.0
    old = Session(hasty_bench.executor(), hasty_bench.setup())  # as if killed: it ignores what happens
    await old.open()
    order, pid = await run_to_silence(old, tmp_path / "never")
    hasty_bench.agent_timeout = 1.5
    async with hasty_bench.session() as new:
        await new.executor.attach([order])
        ended = await new.end_of(order)
        assert (ended.lost, ended.error) == (True, "its agent gave no sign of life for 1.5 s")
        await old.until_replaced()
    await asyncio.to_thread(eventually, lambda: not lives(pid))


@pytest.mark.ray
@by("calls")
async def test_closed_link_makes_no_call_even_if_its_agent_does_not_end(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor leaves Ray next, and Ray ends a process that makes a call after that."""
    monkeypatch.setattr("pitchpipe.executors.ray.link._kill_actor", lambda actor: None)
    for patience in ("_SHUTDOWN_MARGIN", "_KILL_TIMEOUT"):
        monkeypatch.setattr(f"pitchpipe.executors.ray.link.{patience}", 0.1)
    hasty_bench.agent_timeout = 60.0
    async with hasty_bench.session() as session:
        order, pid = await run_to_silence(session, tmp_path / "never")
        assert isinstance(session.executor, RayTrialExecutor)
        link = session.executor._links[order.agent]
        assert connections(pid, Path("/")) == 0
        await link.close(0.0)
        assert isinstance(link, RayLink)
        assert (link.is_connected, link._heartbeat._timer) == (False, None)
        os.kill(pid, signal.SIGKILL)


@pytest.mark.ray
@by("socket", "calls")
def test_what_an_agent_says_that_was_given_up_out_of_reach_is_not_heard(
    hasty_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As with a broken network, the kill does not reach the agent."""

    async def nothing(care: AgentCare) -> None:
        del care

    monkeypatch.setattr(RayLink, "kill", lambda link: None)
    monkeypatch.setattr(AgentCare, "sweep", nothing)
    pid = asyncio.run(check_late(hasty_bench, tmp_path / "go"))
    eventually(lambda: not lives(pid))  # the end of the experiment ends it
