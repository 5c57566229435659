"""A connection with one JSON object per line: asked blocking and on a loop, and what it raises when nothing comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.store.json_lines import JsonConnection, json_line

PATIENCE = 30.0


def served(path: Path, use: Callable[[], Awaitable[Any]], replies: int = 10) -> Any:
    """Return what `use` returns while a server echoes that many requests of each connection and then leaves."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(replies):
            if line := await reader.readline():
                writer.write(json_line({"asked": json.loads(line)}))
        writer.close()
        await writer.wait_closed()

    async def serve() -> Any:
        async with await asyncio.start_unix_server(echo, path, limit=2**22):
            result = await use()
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
            return result

    return asyncio.run(serve())


def test_replies_come_back_blocking_and_on_a_loop(tmp_path: Path) -> None:
    large = {"text": "x" * 200_000}

    async def use() -> list[Any]:
        with JsonConnection.to(tmp_path / "s") as blocking, JsonConnection.to(tmp_path / "s") as waiting:
            now = [await asyncio.to_thread(blocking.ask_now, message, PATIENCE) for message in ({}, large)]
            return [*now, await waiting.ask({"op": 1}, PATIENCE)]

    assert served(tmp_path / "s", use) == [{"asked": {}}, {"asked": large}, {"asked": {"op": 1}}]


def test_end_of_the_other_side_is_noticed(tmp_path: Path) -> None:
    async def use() -> None:
        with JsonConnection.to(tmp_path / "s") as connection:
            assert await connection.ask({}, PATIENCE) == {"asked": {}}
            await connection.until_end(PATIENCE)
            with pytest.raises((EOFError, BrokenPipeError)):
                await connection.ask({}, PATIENCE)

    served(tmp_path / "s", use, replies=1)


def test_connection_that_nothing_listens_to_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        JsonConnection.to(tmp_path / "s")
