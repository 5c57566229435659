"""The server as a process: it announces itself, ends with its parent, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvicorn
import websockets.asyncio.client

from pitchpipe.server.__main__ import main
from pitchpipe.server.experiments import Experiments
from pitchpipe.server.process import ServerError, ServerProcess
from pitchpipe.server.security import ServerLimits, ServerSettings, url_of
from pitchpipe.server.serving import Serving, ServingError, address_file, http_protocol

from ..stored import MadeExperiment, a_trial
from .asking import served

STARTER = """
import json, sys, time
from pathlib import Path
from pitchpipe.server.process import ServerProcess
server = ServerProcess(Path(sys.argv[1]), "made1234", pages=False)
server.start()
print(json.dumps({"url": server.url(), "pid": server.pid}), flush=True)
time.sleep(600)
"""


def messages(url: str) -> Generator[tuple[str, Any], None, None]:
    """Yield the server-sent events of an address, as they arrive."""
    with urllib.request.urlopen(url, timeout=60) as stream:
        kind = ""
        for line in stream:
            name, _, value = line.decode().strip().partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def test_process_responds_streams_events_and_ends(made: MadeExperiment) -> None:
    directory = made.folder.path.parent
    with ServerProcess(directory, "made1234", pages=False) as server:
        url = server.url()
        assert ask(f"{url}/api/v1/experiments/current")["id"] == "made1234"
        announced = json.loads(address_file(made.folder.path).read_text())
        assert announced == {"url": url, "pid": server.pid}
        assert address_file(made.folder.path).stat().st_mode & 0o077 == 0
        events = messages(f"{url}/api/v1/experiments/current/events/stream")
        assert next(events)[0] == "hello"
        made.commit(a_trial(0, "RUNNING"))
        kind, event = next(events)
        assert (kind, event["status"]) == ("trial", "RUNNING")
        pid = server.pid
        events.close()
    assert pid is not None
    assert not psutil.pid_exists(pid)
    assert not address_file(made.folder.path).exists()
    assert (made.folder.logs / "server.log").read_text() == ""


def test_server_ends_when_its_starter_is_killed(made: MadeExperiment) -> None:
    command = [sys.executable, "-P", "-c", STARTER, str(made.folder.path.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        announced = json.loads(starter.stdout.readline())
        server = psutil.Process(announced["pid"])
        os.kill(starter.pid, signal.SIGKILL)
    psutil.wait_procs([server], timeout=30)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


@asynccontextmanager
async def serving_app(app: Any, protocol: Any) -> AsyncIterator[int]:
    """Serve an application in this loop; yields the port."""
    config = uvicorn.Config(app, port=0, http=protocol, log_level="warning")
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await server.shutdown()


def received(connection: socket.socket) -> bytes:
    """Return everything that arrives until the server closes the connection."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


HEAD = b"GET /api/v1/experiments HTTP/1.1\r\nHost: localhost\r\n"
SLOW = {
    "nothing": (b"", b""),
    "half a head": (HEAD, b""),
    "half a head after a response": (HEAD + b"\r\n" + HEAD, b"HTTP/1.1 200 OK"),
    "a body that is not read, after a response": (
        HEAD + b"Content-Length: 9\r\n\r\n{",
        b"HTTP/1.1 200 OK",
    ),
    "half a body": (
        b"POST /api/v1/experiments/made1234/stop HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
        b"HTTP/1.1 408 Request Timeout",
    ),
}


@pytest.mark.parametrize("case", SLOW)
def test_slow_connections_are_closed_and_make_room(made: MadeExperiment, case: str) -> None:
    sent, answer = SLOW[case]
    limits = ServerLimits(connections=4, head_seconds=0.3, body_seconds=0.3)
    with served(made.folder.path.parent, limits) as serving:
        address = serving.url.removeprefix("http://").split(":")
        slow = [socket.create_connection((address[0], int(address[1])), timeout=30) for _ in range(3)]
        for connection in slow:
            connection.sendall(sent)
        assert [received(connection).partition(b"\r\n")[0] for connection in slow] == [answer] * 3
        assert [each["id"] for each in ask(f"{serving.url}/api/v1/experiments")] == ["made1234"]


def test_stream_outlives_the_deadline_of_a_head(made: MadeExperiment) -> None:
    with served(made.folder.path.parent, ServerLimits(head_seconds=0.05)) as serving:
        events = messages(f"{serving.url}/api/v1/experiments/made1234/events/stream")
        assert next(events)[0] == "hello"
        silent = socket.create_connection(("127.0.0.1", int(serving.url.rpartition(":")[2])), timeout=30)
        assert received(silent) == b""  # it is younger than the stream, and its deadline has passed
        made.commit(a_trial(0, "RUNNING"))
        assert next(events)[0] == "trial"
        events.close()


def test_client_that_does_not_read_its_response_is_disconnected() -> None:
    async def flood(scope: Any, receive: Any, send: Any) -> None:
        async def pour() -> None:
            while True:
                await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
                await asyncio.sleep(0)

        if scope["type"] == "lifespan":
            return
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        pouring = asyncio.create_task(pour())
        said.append((await receive())["type"])
        pouring.cancel()
        ended.set()

    async def connect() -> None:
        async with serving_app(flood, http_protocol(60.0, 0.05)) as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                await asyncio.wait_for(ended.wait(), 20)
            finally:
                writer.transport.abort()

    said, ended = list[str](), asyncio.Event()
    asyncio.run(connect())
    assert said == ["http.disconnect"]


def test_websocket_outlives_the_deadline_of_a_head() -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": (await receive())["text"]})

    async def talk() -> str:
        async with (
            serving_app(echo, http_protocol(0.05, 60.0)) as port,
            websockets.asyncio.client.connect(f"ws://127.0.0.1:{port}") as websocket,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""  # it is younger than the websocket
            writer.close()
            await websocket.send("still here")
            return str(await websocket.recv())

    assert asyncio.run(talk()) == "still here"


def test_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError, match=f"port {port} of 127.0.0.1 .* choose another port"):
            Serving(Experiments(tmp_path), ServerSettings(port=port), pages=False)


def test_open_address_without_a_token_is_refused_before_anything_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "give it a token" in json.loads(capsys.readouterr().out)["error"]


@pytest.fixture
def python_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that replaces the interpreter of server processes by a shell script."""

    def replace(script: str) -> None:
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr("pitchpipe.server.process.sys.executable", str(path))

    return replace


@pytest.mark.parametrize(
    ("script", "reason"), [("""echo '{"error": "no port"}'""", "no port"), ("exit 3", "exit code 3")]
)
def test_server_that_cannot_start_says_why(
    tmp_path: Path, python_is: Callable[[str], None], script: str, reason: str
) -> None:
    python_is(script)
    with ServerProcess(tmp_path) as server, pytest.raises(ServerError, match=reason):
        server.url()


def test_token_is_in_the_environment_and_not_in_the_list_of_processes(
    tmp_path: Path, python_is: Callable[[str], None]
) -> None:
    python_is(r'''printf '{"url": "%s %s"}\n' "$PITCHPIPE_SERVER_TOKEN" "$*"''')
    settings = ServerSettings(host="0.0.0.0", token="a-secret-that-is-long")
    with ServerProcess(tmp_path, settings=settings) as server:
        token, arguments = server.url().split(" ", 1)
    assert token == "a-secret-that-is-long"
    assert "--host 0.0.0.0" in arguments
    assert "a-secret" not in arguments


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8"), ("::", "http://[::1]:8"), ("", "http://127.0.0.1:8")],
)
def test_address_is_one_a_browser_takes(host: str, url: str) -> None:
    assert url_of(host, 8) == url
