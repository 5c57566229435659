"""What a manager sees of the supervisor: its lease, its status, its end. Most supervisors here are a few lines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pitchpipe.executors.errors import ExecutorError
from pitchpipe.executors.private_ray.lease import acquire, ray_status, stop_ray
from pitchpipe.executors.private_ray.supervisor_files import SupervisorFiles, SupervisorState

PATIENCE = 20.0
GRANTED = {"address": "here:1", "token_path": "/token", "pid": 7}


class FakeSupervisor:
    """Gives each operation its reply; without one it closes the connection."""

    def __init__(self, **replies: dict[str, Any]) -> None:
        self.replies = replies
        self.requests: list[dict[str, Any]] = []
        self.talks: list[asyncio.Task[Any] | None] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.talks.append(asyncio.current_task())
        while line := await reader.readline():
            self.requests.append(json.loads(line))
            reply = self.replies.get(self.requests[-1]["op"])
            if reply is None:
                break
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()
        await writer.wait_closed()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[FakeSupervisor]:
        server = await asyncio.start_unix_server(self.talk, SupervisorFiles.current().socket)
        async with server:
            try:
                yield self
            finally:
                await asyncio.gather(*filter(None, self.talks))


async def test_lease_is_given_back() -> None:
    async with FakeSupervisor(lease=GRANTED, release={"leaving": False}).serving() as supervisor:
        lease = await acquire(300.0, {"CPU": 4})
        assert (lease.address, lease.token_path, lease.supervisor_pid) == ("here:1", "/token", 7)
        await lease.close()
    asked, released = supervisor.requests
    assert (asked["idle_timeout"], asked["resources"]) == (300.0, {"CPU": 4})
    assert asked["versions"].keys() == {"Ray", "Python", "environment"}
    assert released == {"op": "release"}


async def test_refusal_of_the_supervisor_is_an_error_in_its_words() -> None:
    async with FakeSupervisor(lease={"error": "was started with 3 widget"}).serving():
        with pytest.raises(ExecutorError, match="was started with 3 widget"):
            await acquire(0.0)


async def test_lease_can_be_closed_when_the_supervisor_ends_in_place_of_a_reply() -> None:
    async with FakeSupervisor(lease=GRANTED).serving():
        lease = await acquire(0.0)
        assert not await lease.is_lost(within=0.01)
        await lease.close()


async def test_status_is_the_supervisors_reply() -> None:
    async with FakeSupervisor(status={"pid": 7, "leases": 2}).serving():
        assert await asyncio.to_thread(ray_status) == {"pid": 7, "leases": 2}


def test_status_while_ray_starts_is_known_without_a_reply() -> None:
    files = SupervisorFiles.current()
    files.write_state(SupervisorState(pid=7, created=0.0, temp_dir="/x"))
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(files.socket))
        deaf.listen()
        assert ray_status() == {"pid": 7, "starting": True}


async def test_stop_asks_the_supervisor_and_removes_its_files() -> None:
    async with FakeSupervisor(stop={"leaving": True}).serving() as supervisor:
        assert await asyncio.to_thread(stop_ray) is True
    assert supervisor.requests == [{"op": "stop"}]
    assert not SupervisorFiles.current().socket.exists()


@pytest.mark.ray
def test_ray_that_does_not_start_is_an_error_in_words_and_leaves_only_its_log(runtime_directory):
    with pytest.raises(ExecutorError, match=r"did not start: .*private-ray\.log"):
        asyncio.run(acquire(0.0, {"CPU": -1}))
    assert {path.name for path in runtime_directory.iterdir()} <= {"private-ray.log", "private-ray.lock"}
