"""A line to an agent whose other end is in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pitchpipe.executors.agents import Listener
from pitchpipe.executors.socket_link import SocketLink
from pitchpipe.trial_agent import Event, Hello, MessageDecoder, encode_message

PATIENCE = 30.0


class Heard(Listener):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Event]] = []
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_batch(self, agent: str, events: Sequence[Event], cursor: int) -> None:
        self.batches.append(events)

    def on_lost(self, agent: str, reason: str) -> None:
        self.lost.set_result(reason)


class Link(SocketLink):
    """A link to an agent that cannot be killed."""

    def kill(self) -> None:
        return

    async def close(self, grace: float) -> None:
        await self.wait_closed(grace)


def batch(number: int) -> bytes:
    return encode_message(
        {"events": [{"e": "problem", "trial": "AbCdE", "attempt": 1, "message": "?"}], "cursor": number}
    )


async def give_up(folder: Path) -> None:
    peers: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_unix_server(lambda *peer: peers.put_nowait(peer), folder / "a")
    heard = Heard()
    link = Link(
        agent="0-0", path=folder / "a", hello=Hello(), listener=heard, timeout=0.3, new=True
    )  # silent from its first batch on
    reader, writer = await peers.get()
    assert MessageDecoder().feed(await reader.read(1000))[0]["op"] == "hello"
    writer.write(batch(1))
    assert await heard.lost == "its agent gave no sign of life for 0.3 s"
    assert len(heard.batches) == 1
    link.data_received(batch(2))  # what was on its way when the agent was given up
    assert len(heard.batches) == 1
    await reader.read()  # returns: our end is closed
    writer.close()
    await link.close(0.0)
    server.close()


def test_agent_that_was_given_up_is_not_heard_and_its_line_is_closed(runtime_directory: Path):
    asyncio.run(asyncio.wait_for(give_up(runtime_directory), PATIENCE))
