"""The server as a process: it announces itself, ends with who started it, and leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pitchpipe.server.__main__ import main
from pitchpipe.server.experiments import Experiments
from pitchpipe.server.process import ServerError, ServerProcess
from pitchpipe.server.security import ServerSettings
from pitchpipe.server.serving import Serving, ServingError, address_file, url_of

from .made_stores import MadeExperiment, a_trial

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
    """The server-sent events of an address, as they come."""
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


def test_process_answers_tells_what_happens_and_goes(made: MadeExperiment) -> None:
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
        kind, told = next(events)
        assert (kind, told["status"]) == ("trial", "RUNNING")
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
        told = json.loads(starter.stdout.readline())
        server = psutil.Process(told["pid"])
        os.kill(starter.pid, signal.SIGKILL)
    psutil.wait_procs([server], timeout=30)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


def test_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError, match=f"port {port} of 127.0.0.1 .* choose another port"):
            Serving(Experiments(tmp_path), ServerSettings(port=port), pages=False)


def test_open_address_without_a_token_is_refused_before_anything_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "--host", "0.0.0.0"]) == 2
    assert "give it a token" in json.loads(capsys.readouterr().out)["error"]


def test_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [sys.executable, "-c", """print('{"error": "no port"}')"""]
    server = ServerProcess(tmp_path)
    monkeypatch.setattr(server, "_command", lambda: answers)
    server.start()
    with pytest.raises(ServerError, match="no port"):
        server.url()
    server.stop()
    silent = ServerProcess(tmp_path)
    monkeypatch.setattr(silent, "_command", lambda: [sys.executable, "-c", "raise SystemExit(3)"])
    with silent, pytest.raises(ServerError, match="exit code 3"):
        silent.url()


def test_token_is_not_seen_in_the_list_of_processes(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, settings=ServerSettings("0.0.0.0", token="a-secret-that-is-long"))
    assert not any("a-secret" in word for word in server._command())


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:8"), ("::", "http://[::1]:8"), ("", "http://127.0.0.1:8")],
)
def test_address_is_one_a_browser_takes(host: str, url: str) -> None:
    assert url_of(host, 8) == url
