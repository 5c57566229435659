"""A line to an agent whose other end is in the test's hands."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pitchpipe.executors.socket_link import SocketLink
from pitchpipe.trial_agent import Hello, MessageDecoder, encode_message

from .bench import PATIENCE, Heard


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


async def test_agent_that_was_given_up_is_not_heard_and_its_line_is_closed(runtime_directory: Path) -> None:
    peers: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    path = runtime_directory / "a"
    server = await asyncio.start_unix_server(lambda *peer: peers.put_nowait(peer), path)
    heard = Heard()
    link = Link(agent="0-0", path=path, hello=Hello(), listener=heard, timeout=0.3, new=True)
    reader, writer = await peers.get()
    assert MessageDecoder().feed(await reader.read(1000))[0]["op"] == "hello"
    writer.write(batch(1))  # it is silent from its first batch on
    async with asyncio.timeout(PATIENCE):
        while not heard.losses:
            heard.arrived.clear()
            await heard.arrived.wait()
    assert heard.losses == ["its agent gave no sign of life for 0.3 s"]
    assert len(heard.events) == 1
    link.data_received(batch(2))  # what was on its way when the agent was given up
    assert len(heard.events) == 1
    await reader.read()  # returns: our end is closed
    writer.close()
    await link.close(0.0)
    server.close()
