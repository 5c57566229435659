"""Silent agents, and the cluster that may be away with them; no Ray runs here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pitchpipe.executors.agents import AgentLink
from pitchpipe.executors.ray.nodes import ClusterAway, RayNode
from pitchpipe.executors.ray.ray_executor import RayTrialExecutor
from pitchpipe.runner.events import AgentLost, AgentSilent, Event

from ..bench import PATIENCE, Bench

AGENT = "0-0"


class Lab:
    """An executor with one agent, in a cluster whose control service is a stand-in."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        self.is_away = False
        self.queries = 0
        self.executor = RayTrialExecutor("host:1")
        self.executor._setup, self.executor._deliver = Bench("ray", folder).setup(), self.events.extend
        self.take_up()
        self.connection = self.executor._connection
        self.connection._settled.set()

    async def __aenter__(self) -> Lab:
        self.watching = asyncio.ensure_future(self.connection._watch_cluster())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.watching.cancel()

    def take_up(self) -> None:
        self.executor._links[AGENT] = cast(AgentLink, object())

    def live_nodes(self, timeout: float) -> tuple[RayNode, ...]:
        del timeout
        self.queries += 1
        if self.is_away:
            raise ClusterAway
        return ()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Let the cluster be queried until `condition` holds."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0)

    async def be_queried(self) -> None:
        """Wait until all queries that have begun have their results, and others, too."""
        enough = self.queries + 3
        await self.until(lambda: self.queries >= enough)

    @property
    def silences(self) -> list[bool]:
        """Whether the agent was silent, each time that this was reported."""
        return [not event.is_over for event in self.events if isinstance(event, AgentSilent)]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab(tmp_path / "exp")
    monkeypatch.setattr("pitchpipe.executors.ray.ray_connection._QUERY_EVERY", 0.001)
    monkeypatch.setattr("pitchpipe.executors.ray.ray_connection.live_nodes", lab.live_nodes)
    return lab


async def test_agent_that_alone_is_silent_is_reported(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    async with lab:
        lab.executor.on_silent(AGENT, True)
        await lab.until(lambda: lab.silences == [True])
        lab.executor.on_silent(AGENT, False)
        assert lab.silences == [True, False]
    assert caplog.messages == ["agent 0-0 gives no sign of life"]


async def test_agent_of_a_cluster_that_is_away_is_reported_only_if_it_is_silent_afterwards(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab:
        lab.is_away = True  # not noticed yet
        lab.executor.on_silent(AGENT, True)
        await lab.until(lab.executor.warnings)
        await lab.be_queried()
        assert lab.silences == []
        (message,) = caplog.messages
        assert "does not answer" in message
        lab.is_away = False
        await lab.until(lambda: lab.silences == [True])


async def test_agent_that_gives_a_sign_of_life_while_the_cluster_is_away_is_not_reported(lab: Lab) -> None:
    async with lab:
        lab.is_away = True
        for is_silent in (True, False, True, False):
            lab.executor.on_silent(AGENT, is_silent)
        await lab.be_queried()
        lab.is_away = False
        await lab.be_queried()
        assert lab.silences == []


async def test_agent_that_is_lost_while_the_cluster_is_away_is_not_silent_and_its_successor_may_be(
    lab: Lab,
) -> None:
    async with lab:
        lab.is_away = True
        lab.executor.on_silent(AGENT, True)
        await lab.be_queried()
        lab.executor.on_lost(AGENT, "its agent gave no sign of life for 10 s")
        lab.take_up()
        lab.is_away = False
        await lab.be_queried()
        (lost,) = lab.events
        assert isinstance(lost, AgentLost)
        lab.executor.on_silent(AGENT, True)
        await lab.until(lambda: lab.silences == [True])


async def test_silence_is_of_no_interest_once_the_cluster_is_given_up(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab:
        lab.is_away = True
        lab.executor.on_silent(AGENT, True)
        await lab.until(lab.executor.warnings)
        lab.connection._fail("it has been gone for 600 s")
        await lab.until(lambda: not lab.executor._tasks._running)
        assert lab.silences == []
        assert len(lab.events) == 1  # the experiment ends
    assert "the executor has failed" not in caplog.text
