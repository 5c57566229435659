"""Agents forked from a process that has loaded their modules: a start costs a tenth of that of a new interpreter.

`Popen` takes the place of `subprocess.Popen` for their command line. What it returns has the same pid, signals, pipes
and exit code; only its command line and the environment that `/proc` shows are those of the nursery.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import IO, Any

import pytest

_NURSERY = """
import contextlib, importlib, json, os, signal, socket, struct, sys, types
sys.modules["tests"] = types.ModuleType("tests")
sys.modules["tests"].__path__ = [sys.argv[2]]

def begin(request, program, status, *descriptors):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        for one in descriptors:
            os.close(one)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(BrokenPipeError):  # the manager that started it is gone
            os.write(status, struct.pack("i", code))
        os._exit(0)
    for one, number in zip(descriptors[:3], range(3)):
        os.dup2(one, number)
        os.close(one)
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.write(status, struct.pack("i", os.getpid()))  # as late as Popen returns: it leads its session
    os.close(status)
    passed = dict(zip(request["passed"], map(str, descriptors[3:])))
    return program.main([passed.get(word, word) for word in request["words"]])

requests = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who wait for the agents end by themselves
while True:
    data, descriptors, *_ = socket.recv_fds(requests, 1 << 18, 8)
    if not data:
        break
    request = json.loads(data)
    *_, program = map(importlib.import_module, request["modules"])
    if os.fork() == 0:
        requests.close()
        sys.exit(begin(request, program, *descriptors))
    for one in descriptors:
        os.close(one)
"""


class _Nursery:
    """The process that agents are forked from, started when it is first needed."""

    _socket: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None

    def bear(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        socket.send_fds(self.requests(), [json.dumps(request).encode()], descriptors)

    def requests(self) -> socket.socket:
        """Return the socket that takes requests."""
        if self._socket is None:
            self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with its:
                here = os.path.dirname(__file__)
                command = [sys.executable, "-P", "-c", _NURSERY, str(its.fileno()), here]
                self._process = subprocess.Popen(
                    command, pass_fds=[its.fileno()], start_new_session=True, cwd="/"
                )
        return self._socket

    def join(self, requests: socket.socket) -> None:
        """Use the nursery of another process."""
        self._socket = requests

    def close(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.shutdown(socket.SHUT_RDWR)  # for those who joined, too
            self._socket.close()
            self._process.wait()
            self._socket = None


NURSERY = _Nursery()


class Popen:
    """An agent that was forked, or another program of the nursery."""

    # What the nursery has loaded; the last one has the function `main`.
    modules: Sequence[str] = (
        "cloudpickle",
        "pitchpipe",
        "pitchpipe.trial_agent.command_trial",
        "pitchpipe.trial_agent.function_trial",
        "pitchpipe.sdk.trial_threads",
        "pitchpipe.trial_agent.__main__",
    )

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        pass_fds: Sequence[int],
        env: Mapping[str, str],
        stdin: int = 0,
        stdout: int | IO[bytes] = 1,
        stderr: int | IO[bytes] = 2,
        cwd: str | None = None,
        start_new_session: bool,
    ) -> None:
        assert start_new_session  # all are
        self.returncode: int | None = None
        self._lock = threading.Lock()  # it is waited for on threads
        self._status, status = os.pipe()
        request = {
            "modules": self.modules,
            "words": self.words(arguments),
            "passed": [str(one) for one in pass_fds],
            "environment": dict(env),
            "cwd": cwd or os.getcwd(),
        }
        with open(os.devnull) as nothing:
            streams = [
                nothing.fileno()
                if one == subprocess.DEVNULL
                else one
                if isinstance(one, int)
                else one.fileno()
                for one in (stdin, stdout, stderr)
            ]
            NURSERY.bear(request, [status, *streams, *pass_fds])
        os.close(status)
        self.pid = self._read()

    def words(self, arguments: Sequence[str]) -> Sequence[str]:
        return arguments[arguments.index("pitchpipe.trial_agent") + 1 :]

    def poll(self) -> int | None:
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                if not select.select([self._status], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("agent", timeout or 0.0)
                self.returncode = self._read()
                os.close(self._status)
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read(self) -> int:
        return struct.unpack("i", os.read(self._status, 4))[0]


@pytest.fixture(scope="session")
def nursery() -> Iterator[None]:
    """End the nursery with the session."""
    yield
    NURSERY.close()


@pytest.fixture
def forked_agents(nursery: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the executor of this machine fork its agents."""
    fork_agents(monkeypatch)


def fork_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    names = SimpleNamespace(Popen=Popen, DEVNULL=subprocess.DEVNULL, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr("pitchpipe.executors.local.local_executor.subprocess", names)
