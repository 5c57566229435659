"""Calls of an agent's actor that do not get through; no Ray runs here."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import shutil
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError

from pitchpipe.executors.ray.agent_files import AgentFiles
from pitchpipe.executors.ray.file_transfer import AgentLocation, pack, unpack
from pitchpipe.executors.ray.link import RayLink
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.trial_agent import Ended, Hello, ReadFile, RunSpec, Saved, Start

from ..bench import PATIENCE, Heard, setup_of

RUN = RunSpec(kind="command", experiment="exp", folder="/exp")
ORDER = AttemptOrder(trial_id="T1", attempt=1, sequence_id=3, record="{}", slot=0, agent="0-0")
START = Start(trial="T1", attempt=1, sequence_id=3, parameters="{}", checkpoint="trials/2/checkpoints/1-1")
SAVED = Saved(trial="T1", attempt=1, name="1-1", sequence=1, time=1.0)
ENDED = Ended(trial="T1", attempt=1, exit_code=0, time=2.0)


class Actor:
    """A handle of an agent far away that runs one trial at once.

    The first calls of each method in `breaks` break, on the way there or, if they are in `late`, on the way back.
    """

    def __init__(self, folder: Path, breaks: dict[str, int], late: Collection[str] = ()) -> None:
        self.calls: list[str] = []
        self.handled: list[dict[str, Any]] = []
        self.has_died = False
        self._folder = folder
        self._breaks = breaks
        self._late = late
        self._next = 0

    def __getattr__(self, method: str) -> SimpleNamespace:
        if method.startswith("_"):
            raise AttributeError(method)
        return SimpleNamespace(remote=functools.partial(self._call, method))

    def _call(self, method: str, *arguments: Any) -> SimpleNamespace:
        self.calls.append(method)
        result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        does_break = self._breaks.get(method, 0) > 0
        if does_break:
            self._breaks[method] -= 1
        if does_break and method not in self._late:
            result.set_exception(ActorUnavailableError("no route to the node", None))
        elif self.has_died:
            result.set_exception(ActorDiedError())
        elif method != "until_replaced":  # that waits
            reply = getattr(self, f"_{method}")(*arguments)
            if does_break:
                result.set_exception(ActorUnavailableError("connection reset", None))
            else:
                result.set_result(reply)
        return SimpleNamespace(future=lambda: result)

    def _connect(self, session: str, hello: Any, sockets: Any) -> AgentLocation:
        return AgentLocation(node="n", host="far", pid=1, created=0.0, folder=str(self._folder))

    def _beat(self) -> None:
        pass

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"running": [], "seen": []} if message["op"] == "hello" else {"data": b"12 steps"}

    def _tell(self, packet: bytes) -> bytes:
        self._take(*orjson.loads(packet))
        return b"[]"

    def _poll(self, packet: bytes) -> bytes:
        session, number, messages, after = orjson.loads(packet)
        self._take(session, number, messages)
        events = [{"e": each.e, **asdict(each)} for each in (SAVED, ENDED)]
        return orjson.dumps({"events": events[after:], "cursor": 2})

    def _take(self, session: str, number: int, messages: list[dict[str, Any]]) -> None:
        if number == self._next:
            self._next += 1
            self.handled += messages

    def _bring(self, data: bytes) -> None:
        unpack(data, self._folder)

    def _checkpoints(self, folder: str) -> list[str]:
        return ["1-1"]

    def _fetch(self, name: str) -> bytes:
        return pack(str(self._folder), [name])

    def _forget(self, name: str) -> None:
        shutil.rmtree(self._folder / name, ignore_errors=True)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return the folder of the experiment and that of the agent, which has the files of a trial."""
    here, there = tmp_path / "exp", tmp_path / "there"
    for path in (here / "trials/2/checkpoints/1-1", there / "trials/3/checkpoints/1-1"):
        path.mkdir(parents=True)
        (path / "weights").write_text(f"of trial {path.parts[-3]}")
    (there / "trials/3/stdout").write_text("12 steps")
    return here, there


def link_to(actor: Actor, heard: Heard, folder: Path, timeout: float = PATIENCE) -> RayLink:
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    found.set_result(actor)
    files = AgentFiles("0-0", setup_of(folder, RUN), lambda: [ORDER], list)
    return RayLink(agent="0-0", finding=found, hello=Hello(), listener=heard, files=files, timeout=timeout)


METHODS = ["connect", "ask", "bring", "poll", "fetch", "checkpoints", "forget", "until_replaced"]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.executors.ray.actor_calls._CALL_AGAIN", 0.0)
    monkeypatch.setattr("pitchpipe.executors.ray.link.kill_actor", lambda actor: None)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize(
    "methods", [*([method] for method in METHODS), METHODS], ids=lambda methods: methods[0]
)
async def test_call_that_does_not_get_through_is_made_again_and_nothing_is_lost_or_done_twice(
    methods: list[str], way: str, folders: tuple[Path, Path]
) -> None:
    here, there = folders
    late = [method for method in methods if way == "back" and method != "until_replaced"]
    actor = Actor(there, dict.fromkeys(methods, 2), late)

    heard = Heard()
    link = link_to(actor, heard, here)
    link.send(START)
    link.poll(0)
    async with asyncio.timeout(PATIENCE):
        assert await link.ask(ReadFile("trials/3/stdout", 0, 100)) == {"data": b"12 steps"}
        await heard.arrived.wait()
    assert (heard.losses, heard.meetings) == ([], 1)
    assert [type(event) for event in heard.events] == [Saved, Ended]
    link._calls.is_closing = True
    link.lose("the test ends")
    assert [each["op"] for each in actor.handled] == ["start"]
    assert (there / "trials/2/checkpoints/1-1/weights").read_text() == "of trial 2"
    assert (here / "trials/3/checkpoints/1-1/weights").read_text() == "of trial 3"
    assert (here / "trials/3/stdout").read_text() == "12 steps"
    assert not (there / "trials/3").exists()
    assert all(actor.calls.count(method) >= 3 for method in methods)


async def run_to_loss(actor: Actor, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return why an agent is lost whose trial has ended; it is not called after that."""
    made: list[int] = []
    lose = RayLink.lose

    def lose_and_count(link: RayLink, reason: str) -> None:
        made.append(len(actor.calls))
        lose(link, reason)

    monkeypatch.setattr(RayLink, "lose", lose_and_count)
    heard = Heard()
    link = link_to(actor, heard, folder, timeout=0.2)
    link.send(START)
    link.poll(0)
    async with asyncio.timeout(PATIENCE):
        await heard.arrived.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    await link._tasks.wait(PATIENCE)
    assert len(actor.calls) == made[0]
    assert heard.events == []
    (reason,) = heard.losses
    return reason


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("method", ["ask", "bring", "poll", "fetch", "checkpoints"])
async def test_agent_that_stays_out_of_reach_is_given_up_and_not_called_any_more(
    method: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = folders
    actor = Actor(there, {method: 10**9, "beat": 10**9})
    assert await run_to_loss(actor, here, monkeypatch) == "its agent gave no sign of life for 0.2 s"


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("method", ["fetch", "bring"])
async def test_agent_that_dies_during_a_call_about_its_files_is_lost(
    method: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = folders
    actor = Actor(there, {})

    def die(*arguments: Any) -> None:
        actor.has_died = True
        raise ActorDiedError

    monkeypatch.setattr(actor, f"_{method}", die)
    assert await run_to_loss(actor, here, monkeypatch) == "its agent's process has ended or was killed"
