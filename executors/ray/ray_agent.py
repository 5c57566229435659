"""The trial agent as a Ray actor: the same agent as a local one, with calls in place of a socket, or beside it.

This class runs in a Ray worker. A manager first opens a session, which ends the session of an earlier manager. One on
the same node then uses a socket, as with a local agent.
Ray may run the calls of a threaded actor out of order, so messages carry numbers and wait for their turn. They
travel as JSON bytes, which Ray passes faster than other values.
"""

from __future__ import annotations

import hmac
import importlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...trial_agent import (
    LAST_RESORT,
    Agent,
    Batch,
    Message,
    Reply,
    UnixServer,
    base_environment,
    from_bytes,
    to_bytes,
)
from .file_transfer import AgentLocation, make_working_folder, pack, unpack, working_folder

# A poll without events returns after so many seconds and is repeated, which shows that the manager lives.
POLL_SECONDS = 10.0
# Ray sets these in a worker to the GPUs that it has assigned.
_DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """What an agent is created with.

    `environment` is the manager's if both are on one machine, and None if trials use the node's. Either way trials
    get `omp_threads` as OMP_NUM_THREADS (None: unset), because Ray overwrites it in its workers. A node that finds the
    file `mark` in `folder` sees the experiment's folder (the default is found wherever the folder is). With
    `code_is_shipped` the trials' code is in the worker's working directory. An agent `is_in_group` if a trial has
    several nodes; without a manager it releases the group.
    """

    agent_id: str
    token: str
    folder: str
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    omp_threads: str | None = None
    has_gpus: bool = False
    mark: str = "."
    code_is_shipped: bool = False
    is_in_group: bool = False


class RayAgent:
    """Runs an `Agent` in a thread; the process ends with it."""

    def __init__(self, setup: AgentSetup, clock: Callable[[], float] = time.monotonic) -> None:
        environment = trial_environment(setup, os.environ)
        self._folder = working_folder(setup.folder, setup.mark, setup.agent_id, os.environ)
        self._is_away = self._folder != setup.folder
        if self._is_away:
            make_working_folder(self._folder, os.environ)
        self._code_directory = os.getcwd() if setup.code_is_shipped else None
        # A function trial runs in this process, and libraries read their settings when it imports them.
        os.environ.clear()
        os.environ.update(environment)
        if setup.directory is not None and os.path.isdir(setup.directory):
            os.chdir(setup.directory)
        self._token = setup.token
        spools = os.path.join(self._folder, "agents")
        self._agent = Agent(setup.agent_id, spools, environment=environment, is_alone=True)
        self._lock = threading.Lock()
        self._session = ""
        self._next = 0
        self._early: dict[int, list[Message]] = {}
        self._replaced = threading.Event()
        self._socket: _Socket | None = None
        self._leave_no_files = False
        self._is_in_group = setup.is_in_group
        self._is_orphan = False
        self._clock = clock
        self._last_sign = clock()
        self._trials = threading.Thread(target=self._run, name="trials", daemon=True)
        self._trials.start()
        threading.Thread(target=self._leave_when_orphaned, name="orphan", daemon=True).start()

    def connect(self, session: str, hello: Message, sockets: str | None = None) -> AgentLocation:
        """Begin a session and return where this agent is; raise `PermissionError` if the token is wrong.

        A manager on the same node finds a socket of this agent in its directory `sockets`.
        """
        if not hmac.compare_digest(self._token, str(hello.get("token"))):
            raise PermissionError("the token is not that of this agent's experiment")
        with self._lock:
            self._last_sign = self._clock()
            self._replaced.set()
            self._replaced = threading.Event()
            self._session, self._next, self._early = session, 0, {}
            if self._socket is not None:
                self._socket.close()
            self._socket = _Socket.open(self._agent, self._token, sockets, session)
            path = None if self._socket is None else self._socket.path
        here = AgentLocation.here(self._folder if self._is_away else None, self._code_directory)
        return replace(here, socket=path)

    def beat(self) -> None:
        """Give a sign of life, and note one of the manager, which polls nothing while its disk is full."""
        self._last_sign = self._clock()

    def tell(self, packet: bytes) -> bytes:
        """Handle the messages of `[session, number, messages]` in their turn; return the error replies."""
        return to_bytes(self._take(*from_bytes(packet)))

    def poll(self, packet: bytes) -> bytes:
        """Do as `tell` with `[session, number, messages, after]`, then wait for events numbered above `after`.

        Return `{"events", "cursor"}`, and `"errors"` if there are any.
        """
        session, number, messages, after = from_bytes(packet)
        errors = self._take(session, number, messages)
        if session == self._session:
            batch = self._agent.next_events(after, POLL_SECONDS)
        else:
            batch = Batch(events=[], cursor=after)
        if errors:
            batch["errors"] = errors
        return to_bytes(batch)

    def _take(self, session: str, number: int, messages: list[Message]) -> list[Reply]:
        replies: list[Reply] = []
        with self._lock:
            self._last_sign = self._clock()
            if session == self._session:
                self._early[number] = messages
            while (turn := self._early.pop(self._next, None)) is not None:
                self._next += 1
                self._leave_no_files |= any(each["op"] == "shutdown" for each in turn)
                replies += [reply for each in turn if (reply := self._agent.handle(each)) is not None]
        return replies

    def ask(self, message: Message) -> Reply:
        """Handle one message that has a reply."""
        return self._agent.handle(message) or {}

    def bring(self, data: bytes) -> None:
        """Unpack files into the folder in which this agent works."""
        unpack(data, Path(self._folder))

    def fetch(self, name: str) -> bytes:
        """Return a file or folder, packed."""
        return pack(self._folder, [name])

    def forget(self, name: str) -> None:
        """Remove a folder."""
        shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)

    def checkpoints(self, trial_folder: str) -> list[str] | None:
        """Return the names of the checkpoints of a trial that are kept here; None if it has no folder here."""
        folder = Path(self._folder, trial_folder)
        return [path.name for path in folder.glob("checkpoints/*")] if folder.is_dir() else None

    def until_replaced(self, session: str) -> None:
        """Return when another manager has begun a session; the call fails when this process ends."""
        with self._lock:
            replaced = self._replaced
            if session != self._session:
                return
        replaced.wait()

    def _run(self) -> None:
        self._agent.run()
        if self._leave_no_files and self._is_away:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._exit(0)

    def _exit(self, code: int) -> None:
        """End this process: calls that wait here fail at once, which the manager sees."""
        if self._is_orphan and self._is_in_group:
            util: Any = importlib.import_module("ray.util")
            if (group := util.get_current_placement_group()) is not None:
                util.remove_placement_group(group)
        os._exit(code)

    def _leave_when_orphaned(self) -> None:
        """Shut down after the orphan timeout without a manager; a trial that still runs ends, too."""
        while (remaining := self.seconds_left()) > 0:
            # Short waits: `configure` may shorten the timeout meanwhile.
            time.sleep(min(remaining, POLL_SECONDS))
        self._is_orphan = True
        self._agent.shutdown()
        # A function ends at its next report; one that never reports ends with this process.
        self._trials.join(self._agent.grace + LAST_RESORT)
        self._exit(1)

    def seconds_left(self) -> float:
        """Return how long the agent stays without a manager; one that waits for events may be silent meanwhile."""
        agent, now = self._agent, self._clock()
        if self._socket is not None and self._socket.has_manager:
            self._last_sign = now
        alone_since = self._last_sign + POLL_SECONDS
        if agent.idle_since is not None:
            alone_since = max(agent.idle_since, alone_since)
        return alone_since + agent.orphan_timeout - now


class _Socket:
    """A socket for the manager of one session, served in a thread."""

    def __init__(self, path: str, server: UnixServer) -> None:
        self.path = path
        self._server = server
        self._thread = threading.Thread(target=server.serve, name="socket", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, agent: Agent, token: str, directory: str | None, session: str) -> _Socket | None:
        """Listen in the manager's directory; return None if that is not here."""
        if directory is None:
            return None
        path = os.path.join(directory, f"{session}.sock")
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(path)
        except OSError:  # no such directory, or its path is too long
            listener.close()
            return None
        listener.listen(1)
        return cls(path, UnixServer(agent, listener, token, ends_orphans=False))

    @property
    def has_manager(self) -> bool:
        return self._server.has_manager

    def close(self) -> None:
        """Hang up: when this returns, messages of an earlier manager are no longer handled."""
        self._server.close()
        self._thread.join()


def trial_environment(setup: AgentSetup, worker: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent's trials; `worker` is that of its Ray worker.

    >>> setup = AgentSetup(agent_id="a", token="", folder="/exp", environment={"HOME": "/home/ada"}, has_gpus=True)
    >>> worker = {"RAY_JOB_ID": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "3"}
    >>> environment = trial_environment(setup, worker)
    >>> sorted(environment), environment["CUDA_VISIBLE_DEVICES"]
    (['CUDA_VISIBLE_DEVICES', 'HOME', 'PATH'], '3')
    """
    environment = base_environment(worker if setup.environment is None else setup.environment)
    environment.pop("OMP_NUM_THREADS", None)
    if setup.omp_threads is not None:
        environment["OMP_NUM_THREADS"] = setup.omp_threads
    if setup.has_gpus:
        environment.update({name: worker[name] for name in _DEVICE_VARIABLES if name in worker})
    return environment
