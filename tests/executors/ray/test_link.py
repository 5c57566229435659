"""Connections to agents that are still being made, or lost; those to silent agents are in test_silent_agents.py."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pitchpipe.executors.ray.agent_files import AgentFiles
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.trial_agent import Ended, Event, Hello, Kill, Request, Start

from ..bench import Heard

START = Start(trial="T1", attempt=1, sequence_id=0, parameters="{}")
KILL = Kill("T1", 1)


class NoFiles(AgentFiles):
    """An agent that sees the experiment's folder and leaves nothing behind."""

    def __init__(self) -> None:
        self.where = None


def link_to_none(heard: Heard, new: bool) -> RayLink:
    """Return a connection to an agent that is never found."""
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return RayLink(agent="0-0", finding=never, hello=Hello(), listener=heard, files=NoFiles(), new=new)


async def events_after(*requests: Request, new: bool) -> list[Event]:
    heard = Heard()
    link = link_to_none(heard, new)
    for request in requests:
        link.send(request)
    await asyncio.sleep(0)
    assert (heard.losses, heard.silences) == ([], [])
    return heard.events


async def test_trial_whose_agent_is_being_made_ends_when_it_is_stopped() -> None:
    (ended,) = await events_after(Hello(), START, KILL, KILL, new=True)
    assert isinstance(ended, Ended)
    assert (ended.trial, ended.attempt, ended.error) == ("T1", 1, "stopped before it had started")


async def test_only_a_start_of_this_manager_and_of_this_attempt_is_taken_back() -> None:
    assert await events_after(START, KILL, new=False) == []
    assert await events_after(START, Kill("T1", 2), new=True) == []


async def test_lost_agent_is_not_called_when_its_socket_reports_its_end_later() -> None:
    """It would be called until the manager ends, and Ray ends a process that makes a call after it has left Ray."""
    link = link_to_none(Heard(), new=True)
    link._node_socket, link._calls.is_closing = SimpleNamespace(drop=lambda: None, unhandled=[]), True
    link.lose("its process has ended")
    link.on_lost("0-0", "its agent is gone")
    assert link._heartbeat._timer is None
