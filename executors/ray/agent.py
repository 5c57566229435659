"""The trial agent as a Ray actor: the same agent as a local one, with calls in place of a socket.

This class runs in a Ray worker. A manager opens a session first; from then on what earlier managers still
have waiting here returns. Ray may run the calls of a threaded actor in another order than they were made, so
messages carry numbers and wait for their turn. They travel as JSON bytes: Ray takes longer over other values.
"""

from __future__ import annotations

import hmac
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from ...trial_agent import LAST_RESORT, Agent, base_environment
from .files import make_working_folder, pack, unpack, working_folder
from .strays import Whereabouts

__all__ = ["POLL_SECONDS", "AgentSetup", "RayAgent"]

Message = dict[str, Any]

# A poll that finds nothing returns after so long and is made again: so an agent knows that its manager lives.
POLL_SECONDS = 10.0
# Set by Ray in a worker according to the GPUs that it gave to it.
_DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR")


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """What an agent is made with.

    `environment` is the manager's when both are on one machine, and None when the node's is the one to use.
    In both cases trials get `omp_threads` as OMP_NUM_THREADS (None: unset), because Ray overwrites it in its
    workers. `search_path` are folders where modules of function trials may lie, after all installed ones. A node
    that finds the file `mark` in `folder` sees the experiment's folder (the default is found wherever the folder is).
    With `code_is_shipped` the trials' code is in the working directory that Ray gave to the worker.
    """

    agent_id: str
    token: str
    folder: str
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    omp_threads: str | None = None
    has_gpus: bool = False
    search_path: tuple[str, ...] = ()
    mark: str = "."
    code_is_shipped: bool = False


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
        sys.path += [path for path in setup.search_path if path not in sys.path]
        self._token = setup.token
        self._agent = Agent(setup.agent_id, os.path.join(self._folder, "agents"), environment=environment)
        self._lock = threading.Lock()
        self._session = ""
        self._next = 0
        self._early: dict[int, list[Message]] = {}
        self._replaced = threading.Event()
        self._leave_no_files = False
        self._clock = clock
        self._heard = clock()
        self._trials = threading.Thread(target=self._run, name="trials", daemon=True)
        self._trials.start()
        threading.Thread(target=self._leave_when_orphaned, name="orphan", daemon=True).start()

    def connect(self, session: str, hello: Message) -> Whereabouts:
        """Begin a session; answers where this agent is. Raises PermissionError for a wrong token."""
        if not hmac.compare_digest(self._token, str(hello.get("token"))):
            raise PermissionError("the token of this agent's experiment is another")
        with self._lock:
            self._heard = self._clock()
            self._replaced.set()
            self._replaced = threading.Event()
            self._session, self._next, self._early = session, 0, {}
        return Whereabouts.here(self._folder if self._is_away else None)

    def beat(self) -> None:
        """Give a sign of life, and take it for one of the manager: it may wait for room and poll nothing."""
        self._heard = self._clock()

    def tell(self, packet: bytes) -> bytes:
        """Handle the messages of `[session, number, messages]` in their turn; answers what went wrong."""
        return orjson.dumps(self._take(*orjson.loads(packet)))

    def exchange(self, packet: bytes) -> bytes:
        """`tell` with `[session, number, messages, after]`, then wait for events numbered above `after`.

        Answers `{"events", "cursor"}`, and `"errors"` if there are any.
        """
        session, number, messages, after = orjson.loads(packet)
        errors = self._take(session, number, messages)
        if session == self._session:
            batch = self._agent.next_events(after, POLL_SECONDS)
        else:
            batch = {"events": [], "cursor": after}
        return orjson.dumps({**batch, "errors": errors} if errors else batch)

    def _take(self, session: str, number: int, messages: list[Message]) -> list[Message]:
        answers: list[Message] = []
        with self._lock:
            self._heard = self._clock()
            if session == self._session:
                self._early[number] = messages
            while (turn := self._early.pop(self._next, None)) is not None:
                self._next += 1
                said = [self._agent.handle(self._adapted(each)) for each in turn]
                answers += [answer for answer in said if answer is not None]
        return answers

    def _adapted(self, message: Message) -> Message:
        """Return what a manager says of folders, as it is on this node."""
        if message["op"] == "shutdown" and self._is_away:
            self._leave_no_files = True
        if message["op"] != "configure" or "run" not in message:
            return message
        run = dict(message["run"])
        if self._code_directory is not None:
            run["code_directory"] = self._code_directory
        if self._is_away and "path" in run:
            run["path"] = os.path.join(self._folder, os.path.basename(run["path"]))
        return {**message, "folder": self._folder, "run": run}

    def ask(self, message: Message) -> Message:
        """Handle one message that has an answer."""
        return self._agent.handle(message) or {}

    def bring(self, data: bytes) -> None:
        """Put packed files into the folder in which this agent works."""
        unpack(data, Path(self._folder))

    def fetch(self, name: str, forget: bool) -> bytes:
        """Answer a file or folder, packed; with `forget` it is removed here."""
        data = pack(self._folder, [name])
        if forget:
            shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)
        return data

    def checkpoints(self, trial_folder: str) -> list[str] | None:
        """The names of the checkpoints of a trial that are kept here; None if there is nothing of it here."""
        folder = Path(self._folder, trial_folder)
        shelf = folder / "checkpoints"
        if not folder.is_dir():
            return None
        return [path.name for path in shelf.iterdir()] if shelf.is_dir() else []

    def until_replaced(self, session: str) -> None:
        """Return when another manager has begun a session; fails, as all calls do, when this process ends."""
        with self._lock:
            replaced = self._replaced
            if session != self._session:
                return
        replaced.wait()

    def _run(self) -> None:
        self._agent.run()
        if self._leave_no_files:
            shutil.rmtree(self._folder, ignore_errors=True)
        os._exit(0)  # calls that wait here fail at once, and so the manager knows

    def _leave_when_orphaned(self) -> None:
        """Shut down when no manager was heard of for the orphan timeout; a trial that still runs ends with it."""
        while (remaining := self._seconds_left()) > 0:
            # Not an endless wait: `configure` may shorten the timeout meanwhile.
            time.sleep(min(remaining, POLL_SECONDS))
        self._agent.shutdown()
        # A function ends at its next report; one that never reports ends with this process.
        self._trials.join(self._agent.grace + LAST_RESORT)
        os._exit(1)

    def _seconds_left(self) -> float:
        """How long the agent stays if nobody is heard of; a manager that waits for events is silent meanwhile."""
        agent, now = self._agent, self._clock()
        alone_since = self._heard + POLL_SECONDS
        if agent.idle_since is not None:
            alone_since = max(agent.idle_since, alone_since)
        return alone_since + agent.orphan_timeout - now


def trial_environment(setup: AgentSetup, worker: Mapping[str, str]) -> dict[str, str]:
    """The environment of the trials of an agent in a Ray worker whose own is `worker`.

    >>> setup = AgentSetup("a", "token", "/exp", environment={"HOME": "/home/ada"}, has_gpus=True)
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
