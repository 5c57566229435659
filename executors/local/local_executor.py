"""Runs trials in agent processes on this machine, without Ray."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...runner import AttemptOrder, ResourcesChanged, StartRefused, Totals
from ...store import ExperimentFolder, runtime_directory
from ...trial_agent import TOKEN as AGENT_TOKEN
from ...trial_agent import FileWatch, ProcessTree, best_watch, mark
from ..agent_link import AgentLink
from ..agents import AgentTrialExecutor
from ..daemon_thread import in_thread_or_here
from ..running_attempts import spool_path
from ..socket_link import agent_sockets
from ..tasks import Tasks
from ..trial_executor import Deliver, RunSetup
from .gpu_claims import GpuClaims, is_listened_to
from .local_agent import LocalAgentLink
from .local_resources import Gpu, visible_gpus
from .resources import sufficient_totals

_log = logging.getLogger(__name__)

# -P: modules in the working directory must not hide the package.
_AGENT = (sys.executable, "-P", "-m", "pitchpipe.trial_agent")
# How often (s) to look for claims of experiments that were killed: such a claim stays in the file.
_LOOK_EVERY = 5.0
# How long (s) an agent that cannot be started keeps its trials: the next attempt may find the machine able to.
_TRY_AGAIN = 1.0
# How many short function trials an agent takes at once; their events come back together.
_ORDERS = 8


class LocalTrialExecutor(AgentTrialExecutor):
    """A `TrialExecutor` over processes of this machine.

    `gpu_indices` are the GPUs to use (None: all that are visible), `trials_per_gpu` is how many trials may share one;
    `resources` are amounts of custom resources of this machine.
    """

    def __init__(
        self,
        gpu_indices: tuple[int, ...] | None = None,
        trials_per_gpu: int = 1,
        use_active_gpus: bool = False,
        resources: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self._gpu_indices = gpu_indices
        self._trials_per_gpu = trials_per_gpu
        self._use_active_gpus = use_active_gpus
        self._custom = dict(resources or {})
        self._gpus: dict[int, Gpu] = {}
        self._neighbours: _Neighbours | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}  # the agents that this process started

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Determine what the machine has; agents are started when trials need them."""
        gpus = visible_gpus() if setup.request.gpus else []
        self._gpus = {gpu.index: gpu for gpu in gpus}
        totals = sufficient_totals(
            setup.request, self._gpu_indices, self._trials_per_gpu, self._use_active_gpus, self._custom, gpus
        )
        if setup.run.is_function:
            totals = replace(totals, orders_per_agent=_ORDERS)
        self._setup, self._deliver = setup, deliver
        self._sockets = agent_sockets(setup.folder)
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        (setup.folder / "agents").mkdir(exist_ok=True)
        if setup.request.gpus:
            self._neighbours = _Neighbours(self._claims(), self._on_busy_devices, self._tasks)
            self._neighbours.look()
        return totals

    def start_trial(self, order: AttemptOrder) -> None:
        """Start an attempt, unless another experiment holds one of its GPUs by now."""
        if order.gpus and self._neighbours is not None:
            try:
                taken = self._neighbours.claims.take(order.trial_id, order.gpus)
            except OSError as error:
                _log.warning("the GPUs of trial %s cannot be claimed now: %s", order.trial_id, error)
                self._tasks.later(_TRY_AGAIN, self._refuse, order, f"its GPUs cannot be claimed: {error}")
                return
            if taken:
                self._refuse(order, f"another experiment holds GPU {', '.join(map(str, taken))}")
                return
        super().start_trial(order)

    def _refuse(self, order: AttemptOrder, why: str) -> None:
        if not self._closing and self._neighbours is not None:
            now, devices = self.setup.clock(), tuple(self._neighbours.look())
            self._emit([StartRefused(now, order.trial_id, order.attempt, reason=why, devices=devices)])

    async def end_orphans(self, agent: str) -> None:
        """Kill the processes of a lost agent's attempts; its watchdog may be late or dead, too."""
        if self.setup.run.is_function:
            return
        orders = [order for order in self._orders.values() if order.agent == agent]
        for each in [mark(str(spool_path(self.setup, order))) for order in orders]:
            await in_thread_or_here(partial(ProcessTree(None, each).kill, time.monotonic()))

    def _device_names(self, gpus: Sequence[int]) -> tuple[int | str, ...]:
        """Return GPUs as the user's own `CUDA_VISIBLE_DEVICES` calls them."""
        return tuple(self._gpus[index].name if index in self._gpus else index for index in gpus)

    def _on_end(self, order: AttemptOrder) -> None:
        if order.gpus:
            self._give_back(order.trial_id)

    def _give_back(self, trial_id: str) -> None:
        """Give up the GPUs of a trial, unless it runs again; try again if that is not possible."""
        if self._neighbours is None or any(trial_id == each for each, _ in self._orders):
            return
        try:
            self._neighbours.claims.give_back(trial_id)
        except OSError as error:
            _log.warning("the GPUs of trial %s cannot be given back now: %s", trial_id, error)
            if not self._closing:  # otherwise the claim ends with the experiment
                self._tasks.later(_TRY_AGAIN, self._give_back, trial_id)

    def _on_busy_devices(self, devices: frozenset[int]) -> None:
        self._emit([ResourcesChanged(self.setup.clock(), tuple(sorted(devices)))])

    def _claims(self) -> GpuClaims:
        def has_manager(folder: Path) -> bool:
            return ExperimentFolder(folder).manager() is not None

        cards = {index: gpu.uuid for index, gpu in self._gpus.items() if gpu.uuid}
        return GpuClaims(runtime_directory(), self.setup.folder, self._sockets, has_manager, cards)

    async def _end_others(self, known: Collection[str]) -> None:
        """End the agents of an earlier manager that have no attempt: one may run what the store has forgotten.

        It would write into the files of an attempt that another agent starts next. An idle one ends soon anyway.
        """
        others = [path.stem for path in self._sockets.glob("*.sock") if path.stem not in known]
        links = [link for agent in others if (link := self._connect(agent, spawn=False)) is not None]
        await asyncio.gather(*(link.close(self.setup.run.grace) for link in links))

    async def close(self) -> None:
        """End all agents, including those of an earlier manager."""
        if self._setup is None:
            return
        try:
            agents = [path.stem for path in self._sockets.glob("*.sock")]
        except OSError as error:  # too many open files, perhaps; those with a connection are ended anyway
            _log.warning("agents without a trial are not looked for, and end by themselves: %s", error)
            agents = []
        for agent in agents:
            if agent not in self._links and (link := self._connect(agent, spawn=False)) is not None:
                self._links[agent] = link
        await super().close()
        if self._neighbours is not None:
            for key in list(self._orders):
                self._forget(key)
            self._neighbours.close()
        for path in self._sockets.glob("*.sock"):
            path.unlink(missing_ok=True)
        self._sockets.rmdir()

    def _connect(self, agent: str, *, spawn: bool) -> AgentLink | None:
        path = self._sockets / f"{agent}.sock"
        try:
            is_new = not is_listened_to(path)  # otherwise the agent of an earlier manager lives
            if is_new:
                path.unlink(missing_ok=True)
                if not spawn:
                    return None
                self._children[agent] = self._spawn(agent, path)
        except OSError as error:  # no process, descriptor or memory is free; no event says when one is
            if spawn:
                _log.warning("agent %s cannot be started: %s", agent, error)
                self._tasks.later(_TRY_AGAIN, self._give_up, agent, str(error))
                return None
            is_new = False  # it may live: the link tries to reach it until that is known
        process = self._children.get(agent)
        return LocalAgentLink(agent, path, self, process, new=is_new)

    def _give_up(self, agent: str, error: str) -> None:
        """Have the attempts of an agent that could not be started run on another one, unless it has been since."""
        if agent not in self._links:
            self.on_lost(agent, f"its agent cannot be started: {error}")

    def _spawn(self, agent: str, path: Path) -> subprocess.Popen[bytes]:
        """Start an agent on a listening socket, so that a connection need not wait for it."""
        setup = self.setup
        with (
            socket.socket(socket.AF_UNIX) as listener,
            (setup.folder / "logs" / "agents.log").open("ab") as log,
        ):
            listener.bind(str(path))
            listener.listen(4)
            options = {"--agent": agent, "--listen-fd": listener.fileno(), "--folder": setup.folder}
            return subprocess.Popen(
                [*_AGENT, *(str(word) for option in options.items() for word in option)],
                pass_fds=[listener.fileno()],
                env={**os.environ, AGENT_TOKEN: setup.token},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


class _Neighbours:
    """Watches what other experiments of this machine claim, and reports changes."""

    def __init__(self, claims: GpuClaims, on_change: Callable[[frozenset[int]], None], tasks: Tasks) -> None:
        self.claims = claims
        self._on_change = on_change
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._busy: frozenset[int] = frozenset()
        self._timer: asyncio.TimerHandle | None = None
        claims.busy()  # creates the file
        self._watch: FileWatch = best_watch()
        self._watch.watch(str(claims.path))
        if self._watch.descriptor is not None:
            self._loop.add_reader(self._watch.descriptor, self._on_written)

    def look(self) -> frozenset[int]:
        """Return what others hold now; look again regularly while they do, because they may be killed."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            busy, is_known = self.claims.busy(), True
        except OSError as error:  # too many open files, perhaps
            _log.warning("what other experiments claim cannot be read now: %s", error)
            busy, is_known = self._busy, False
        if busy != self._busy:
            self._busy = busy
            self._tasks.soon(self._on_change, busy)
        if busy or self._watch.descriptor is None or not is_known:
            self._timer = self._tasks.later(_LOOK_EVERY, self.look)
        return busy

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch.descriptor is not None:
            self._loop.remove_reader(self._watch.descriptor)
        self._watch.close()

    def _on_written(self) -> None:
        self._watch.clear()
        self.look()
