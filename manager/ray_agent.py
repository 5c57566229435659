"""The trial agent as a Ray actor: the same agent as a local one, with calls in place of a socket.

This class runs in a Ray worker. A manager opens a session first; from then on what earlier managers still
have waiting here returns. Ray may run the calls of a threaded actor in another order than they were made, so
messages carry numbers and wait for their turn. They travel as JSON bytes: Ray takes longer over other values.
"""

from __future__ import annotations

import hmac
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ..trial_agent.core import Agent
from ..trial_agent.environ import base_environment

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
    workers. `search_path` are folders where modules of function trials may lie, after all installed ones.
    """

    agent_id: str
    token: str
    folder: str
    environment: Mapping[str, str] | None = None
    directory: str | None = None
    omp_threads: str | None = None
    has_gpus: bool = False
    search_path: tuple[str, ...] = ()


class RayAgent:
    """Runs an `Agent` in a thread; the process ends with it."""

    def __init__(self, setup: AgentSetup, clock: Callable[[], float] = time.monotonic) -> None:
        environment = trial_environment(setup, os.environ)
        # A function trial runs in this process, and libraries read their settings when it imports them.
        os.environ.clear()
        os.environ.update(environment)
        if setup.directory is not None and os.path.isdir(setup.directory):
            os.chdir(setup.directory)
        sys.path += [path for path in setup.search_path if path not in sys.path]
        self._token = setup.token
        self._agent = Agent(setup.agent_id, os.path.join(setup.folder, "agents"), environment=environment)
        self._lock = threading.Lock()
        self._session = ""
        self._next = 0
        self._early: dict[int, list[Message]] = {}
        self._replaced = threading.Event()
        self._clock = clock
        self._heard = clock()
        threading.Thread(target=self._run, name="trials", daemon=True).start()
        threading.Thread(target=self._leave_when_orphaned, name="orphan", daemon=True).start()

    def connect(self, session: str, hello: Message) -> Message:
        """Begin a session; answers like `hello`. Raises PermissionError for a wrong token."""
        if not hmac.compare_digest(self._token, str(hello.get("token"))):
            raise PermissionError("the token of this agent's experiment is another")
        with self._lock:
            self._heard = self._clock()
            self._replaced.set()
            self._replaced = threading.Event()
            self._session, self._next, self._early = session, 0, {}
        return self._agent.handle(hello) or {}

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
                answers += [answer for each in turn if (answer := self._agent.handle(each)) is not None]
        return answers

    def ask(self, message: Message) -> Message:
        """Handle one message that has an answer."""
        return self._agent.handle(message) or {}

    def until_replaced(self, session: str) -> None:
        """Return when another manager has begun a session; fails, as all calls do, when this process ends."""
        with self._lock:
            replaced = self._replaced
            if session != self._session:
                return
        replaced.wait()

    def _run(self) -> None:
        self._agent.run()
        os._exit(0)  # calls that wait here fail at once, and so the manager knows

    def _leave_when_orphaned(self) -> None:
        """Shut down when no manager was heard of, and no trial ran, for the orphan timeout."""
        while (remaining := self._seconds_left()) > 0:
            # Not an endless wait: `configure` may shorten the timeout meanwhile.
            time.sleep(min(remaining, POLL_SECONDS))
        self._agent.shutdown()

    def _seconds_left(self) -> float:
        """How long the agent stays if nobody is heard of; a manager that waits for events is silent meanwhile."""
        agent, now = self._agent, self._clock()
        idle_since = now if agent.idle_since is None else agent.idle_since
        alone_since = max(idle_since, self._heard + POLL_SECONDS)
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
