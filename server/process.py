"""Starts the server as a process that ends together with its parent."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from ..protocol import require_extra
from ..store import absolute
from .security import ServerSettings

# Not an argument: all users can see the arguments of a process.
TOKEN_VARIABLE = "PITCHPIPE_SERVER_TOKEN"
_START_PATIENCE = 60.0
_END_PATIENCE = 5.0


class ServerError(Exception):
    """The server could not be started; the message says why."""


def require_server(*, pages: bool) -> None:
    """Raise `MissingExtraError` unless what the HTTP API needs is installed, and what the `pages` need."""
    if pages:
        require_extra("the web pages need", "ui")
    else:
        require_extra("the HTTP API needs", "ui", "fastapi", "uvicorn")


class ServerProcess:
    """The server of a directory of experiments, or of one experiment. `url` waits until it responds, `start` does not.

    It ends with `stop`, with the `with` block, or when this process ends for any reason. Raises `MissingExtraError` if
    the extra `ui` is not installed.
    """

    def __init__(
        self,
        directory: Path,
        experiment_id: str | None = None,
        settings: ServerSettings | None = None,
        *,
        pages: bool = True,
    ) -> None:
        require_server(pages=pages)
        self._directory = absolute(directory)
        self._experiment_id = experiment_id
        self._settings = settings or ServerSettings()
        self._pages = pages
        self._process: subprocess.Popen[bytes] | None = None
        self._url: str | None = None

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The process id, once the process has started."""
        return None if self._process is None else self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has started and not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process without waiting for it."""
        if self._process is not None:
            return
        environment = dict(os.environ)
        if self._settings.token is not None:
            environment[TOKEN_VARIABLE] = self._settings.token
        with self._log() as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the parent
            )

    def url(self, timeout: float = _START_PATIENCE) -> str:
        """Return its address once it listens; raise `ServerError` if it cannot, or not within `timeout` seconds."""
        if self._url is None:
            self._url = self._announced(timeout)
        return self._url

    def stop(self) -> None:
        """End it, and wait until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(_END_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _command(self) -> list[str]:
        settings = self._settings
        command = [sys.executable, "-P", "-m", "pitchpipe.server", str(self._directory), "--end-with-stdin"]
        command += ["--host", settings.host, "--port", str(settings.port)]
        command += [word for host in settings.allowed_hosts for word in ("--allow-host", host)]
        command += [] if self._experiment_id is None else ["--experiment", self._experiment_id]
        return command + ([] if self._pages else ["--no-pages"])

    def _log(self) -> IO[Any]:
        """Open its log in the logs folder of the experiment, or the null device."""
        if self._experiment_id is not None:
            logs = self._directory / self._experiment_id / "logs"
            if logs.is_dir() and os.access(logs, os.W_OK):
                return (logs / "server.log").open("ab")
        return open(os.devnull, "ab")

    def _announced(self, timeout: float) -> str:
        if self._process is None or self._process.stdout is None:
            raise ServerError("the server was not started")
        line = _line_of(self._process.stdout, timeout)
        if line is None:
            raise ServerError(f"the server did not start within {timeout:g} s")
        try:
            news = json.loads(line)
        except ValueError:
            code = self._process.wait()
            raise ServerError(f"the server ended with exit code {code}: see server.log") from None
        if "error" in news:
            raise ServerError(news["error"])
        return news["url"]


def _line_of(pipe: IO[bytes], timeout: float) -> bytes | None:
    """Return the first line of a pipe, or all of it if it ends earlier; None if it is late."""
    deadline, line = time.monotonic() + timeout, b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            piece = os.read(pipe.fileno(), 4096)
            if not piece:
                break
            line += piece
    return line
