"""Server-sent events: they are sent as they happen, and streams end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from pitchpipe.server import ExperimentView
from pitchpipe.server.api.event_streams import Streams, event_stream, log_stream
from pitchpipe.store.reading.log_files import NoSuchFile

from ..stored import MadeExperiment, a_trial


@pytest.fixture
def view(made: MadeExperiment, monkeypatch: pytest.MonkeyPatch) -> ExperimentView:
    for pause in ("_PERIOD", "_COST"):
        monkeypatch.setattr(f"pitchpipe.store.reading.feed.{pause}", 0.0)  # each poll looks
    return ExperimentView(made.folder)


async def messages_of(messages: AsyncIterator[bytes | None]) -> list[str]:
    """Return the messages of a stream until there is nothing new."""
    found = []
    while (message := await anext(messages)) is not None:
        found.append(message.decode())
    return found


def test_events_are_streamed_and_found_again_by_their_id(made: MadeExperiment, view: ExperimentView) -> None:
    async def follow() -> Any:
        stream = event_stream(view, None)
        hello = await messages_of(stream)
        made.commit(a_trial(0, "RUNNING"))
        first = await messages_of(stream)
        made.commit(a_trial(1, "RUNNING"))
        made.commit(a_trial(0, value=1.0))
        missed = await messages_of(event_stream(view, first[0].split()[1]))
        return hello, first, missed, await messages_of(event_stream(view, "other.3"))

    hello, first, missed, reset = asyncio.run(follow())
    assert hello[0].splitlines()[1] == "event: hello"
    assert '"status":"RUNNING"' in first[0]
    assert [message.splitlines()[1] for message in missed] == ["event: trial"] * 2
    assert [message.splitlines()[1] for message in reset] == ["event: reset"]


def test_log_is_streamed_as_it_grows_and_from_the_beginning_when_it_is_truncated(
    made: MadeExperiment, view: ExperimentView
) -> None:
    log = made.folder.logs / "manager.log"

    async def follow() -> Any:
        log.write_text("one\n")
        stream = log_stream(lambda follow: view.log("manager.log", follow), 0)
        found = await messages_of(stream)
        with log.open("a") as file:
            file.write("two\n")
        found += await messages_of(stream)
        log.write_text("new\n")
        return found + await messages_of(stream)

    found = asyncio.run(follow())
    kinds = [message.splitlines()[1] for message in found]
    assert kinds == ["event: log", "event: log", "event: truncated", "event: log"]
    assert '"text":"two\\n"' in found[1]
    assert '"text":"new\\n"' in found[3]


def test_log_that_is_not_there_is_no_stream(view: ExperimentView) -> None:
    with pytest.raises(NoSuchFile):
        asyncio.run(anext(log_stream(lambda follow: view.log("none.log", follow), 0)))  # type: ignore[arg-type]


def test_streams_are_bounded_and_end_with_the_server() -> None:
    async def idle() -> AsyncIterator[bytes | None]:
        while True:
            yield None

    async def follow() -> None:
        streams = Streams(1)
        reading = asyncio.ensure_future(anext(streams.each(idle()), b"the end"))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException, match="close one"):
            streams.check()
        streams.end()
        assert await reading == b"the end"
        streams.check()

    asyncio.run(follow())
