"""A line to an agent that is still being made."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pitchpipe.executors.agents import Listener
from pitchpipe.executors.ray.care import AgentCare
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.trial_agent import Ended, Event, Hello, Kill, Request, Start

START = Start(trial="T1", attempt=1, sequence_id=0, parameters="{}")
KILL = Kill("T1", 1)


class Ear(Listener):
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
    """The events of a line to an agent that is never found."""

    async def check() -> list[Event]:
        ear = Ear()
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        link = RayLink("0-0", never, Hello(), ear, Carefree(), new=new)
        for request in requests:
            link.send(request)
        await asyncio.sleep(0)
        link._finding.cancel()
        return ear.events

    return asyncio.run(check())


def test_trial_whose_agent_is_being_made_ends_when_it_is_stopped():
    (ended,) = heard(Hello(), START, KILL, KILL, new=True)
    assert isinstance(ended, Ended)
    assert (ended.trial, ended.attempt, ended.error) == ("T1", 1, "stopped before it had started")


def test_trial_that_an_earlier_manager_may_have_started_is_stopped_by_its_agent():
    assert heard(START, KILL, new=False) == []


def test_other_trial_is_not_taken_back():
    assert heard(START, Kill("T1", 2), new=True) == []
