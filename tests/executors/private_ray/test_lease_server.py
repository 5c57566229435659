"""A supervisor whose Ray takes as long as a test wants."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from pitchpipe.executors.private_ray.head import RayHead
from pitchpipe.executors.private_ray.supervisor import Supervisor
from pitchpipe.executors.private_ray.supervisor_files import StartLock, SupervisorFiles, SupervisorState
from pitchpipe.store.json_lines import JsonConnection

LEASE = {"op": "lease", "idle_timeout": 300.0, "resources": None, "versions": {}}
PATIENCE = 10.0


class SlowRay(RayHead):
    """Starts when `go` is set."""

    def __init__(self, problem: Exception | None = None) -> None:
        super().__init__(Path("/ray"), {})
        self.go = threading.Event()
        self.problem = problem

    def start(self) -> str:
        assert self.go.wait(PATIENCE)
        if self.problem is not None:
            raise self.problem
        return "here:1"

    def agents(self) -> list[str]:
        return []

    def vital(self) -> list[psutil.Process]:
        return []


@contextlib.asynccontextmanager
async def serving(ray: SlowRay) -> AsyncIterator[tuple[SupervisorFiles, "asyncio.Task[bool]"]]:
    place = SupervisorFiles.current()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place.socket))
    listener.listen(8)
    supervisor = Supervisor(
        place, SupervisorState(pid=1, created=0.0, temp_dir="/x"), StartLock(place.lock), ray
    )
    task = asyncio.create_task(supervisor.serve(listener))
    try:
        yield place, task
    finally:
        ray.go.set()
        task.cancel()
        await asyncio.wait((task,))
        listener.close()


async def ask(line: JsonConnection, **message: object) -> dict[str, object]:
    return await line.ask(message, PATIENCE)


@pytest.mark.parametrize("first_words", [[], [LEASE]])
async def test_supervisor_whose_last_client_goes_abandons_the_start(runtime_directory, first_words) -> None:
    async with serving(SlowRay()) as (place, task):
        first, second = JsonConnection.to(place.socket), JsonConnection.to(place.socket)
        waiting = [asyncio.create_task(ask(first, **words)) for words in first_words]
        assert (await ask(second, op="status"))["address"] == ""
        second.close()
        assert not (await asyncio.wait((task,), timeout=0.2))[0]  # the first is still there
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        first.close()
        assert await asyncio.wait_for(task, PATIENCE) is False


async def test_supervisor_that_is_starting_can_be_stopped(runtime_directory) -> None:
    async with serving(SlowRay()) as (place, task):
        with JsonConnection.to(place.socket) as line:
            assert await ask(line, op="stop") == {"leaving": True}
            assert await asyncio.wait_for(task, PATIENCE) is False


async def test_lease_is_answered_when_ray_has_started(runtime_directory) -> None:
    ray = SlowRay()
    async with serving(ray) as (place, task):
        with JsonConnection.to(place.socket) as line:
            lease = asyncio.create_task(ask(line, **LEASE))
            assert not (await asyncio.wait((lease,), timeout=0.2))[0]
            ray.go.set()
            assert (await lease)["address"] == "here:1"
            assert not task.done()


async def test_supervisor_says_why_its_ray_did_not_start(runtime_directory) -> None:
    ray = SlowRay(ValueError("no such amount"))
    async with serving(ray) as (place, task):
        waiting = asyncio.create_task(JsonConnection.to(place.socket).ask(LEASE, PATIENCE))
        ready = JsonConnection.to(place.socket)
        await ask(ready, op="status")
        ray.go.set()
        assert "the private Ray did not start: no such amount" in (await waiting)["error"]
        await asyncio.wait((task,))
        assert isinstance(task.exception(), ValueError)
        ready.close()
