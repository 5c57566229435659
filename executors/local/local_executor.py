"""Runs trials in agent processes on this machine, without Ray."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from ...runner import AttemptOrder, ResourcesChanged, StartRefused, Totals
from ...store import ExperimentFolder, discard, runtime_directory
from ...trial_agent import TOKEN as AGENT_TOKEN
from ...trial_agent import Hello, ProcessTree, Shutdown, command_words, mark
from ..agents import AgentLink, AgentTrialExecutor
from ..running_attempts import spool_path
from ..socket_link import SocketLink, agent_sockets
from ..tasks import in_thread_or_here
from ..trial_executor import Deliver, RunSetup
from .gpu_claims import GpuClaims, GpuWatch, is_listened_to
from .local_resources import Gpu, local_totals, require_enough, visible_gpus

_log = logging.getLogger(__name__)

# -P: modules in the working directory must not hide the package.
_AGENT = (sys.executable, "-P", "-m", "pitchpipe.trial_agent")
# How long (s) an agent that cannot be started keeps its trials: the next attempt may find the machine able to.
_TRY_AGAIN = 1.0
# How long (s) after the grace of its trial an agent that was asked to shut down is killed.
_SHUTDOWN_MARGIN = 2.0
# How long (s) a process may live after its socket is closed.
_EXIT_MARGIN = 1.0
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
        self._neighbours: GpuWatch | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}  # the agents that this process started

    async def open(self, setup: RunSetup, deliver: Deliver) -> Totals:
        """Determine what the machine has; agents are started when trials need them."""
        gpus = visible_gpus() if setup.request.gpus else []
        self._gpus = {gpu.index: gpu for gpu in gpus}
        totals = local_totals(
            setup.request, self._gpu_indices, self._trials_per_gpu, self._use_active_gpus, self._custom, gpus
        )
        require_enough(totals, setup.request)
        if setup.run.is_function:
            totals = replace(totals, orders_per_agent=_ORDERS)
        self._sockets = agent_sockets(setup.folder)  # first: `close` needs it once there is a setup
        self._setup, self._deliver = setup, deliver
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        (setup.folder / "agents").mkdir(exist_ok=True)
        if setup.request.gpus:
            self._neighbours = GpuWatch(self._claims(), self._on_busy_devices, self._tasks)
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
        """Kill a lost agent, which may only be leaving, then its attempts; its watchdog may be late or dead, too."""
        pid = await in_thread_or_here(partial(_find_agent, agent, self.setup.folder))
        if pid is not None:
            await _end_stranger(pid, 0.0)
        if self.setup.run.is_function:
            return
        for each in [mark(str(spool_path(self.setup, order))) for order in self._attempts.of(agent)]:
            await in_thread_or_here(partial(ProcessTree(None, each).kill, time.monotonic()))

    def _device_names(self, gpus: Sequence[int]) -> tuple[int | str, ...]:
        """Return GPUs as the user's own `CUDA_VISIBLE_DEVICES` calls them."""
        return tuple(self._gpus[index].name if index in self._gpus else index for index in gpus)

    def _on_end(self, order: AttemptOrder) -> None:
        super()._on_end(order)
        if order.gpus:
            self._give_back(order.trial_id)

    def _give_back(self, trial_id: str) -> None:
        """Give up the GPUs of a trial, unless it runs again; try again if that is not possible."""
        if self._neighbours is None or any(trial_id == each for each, _ in self._attempts.orders):
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

    async def _end_others(self, kept: Collection[str]) -> None:
        """End the agents of an earlier manager that have no attempt: one may run what the store has forgotten.

        It would write into the files of an attempt that another agent starts next. An idle one ends soon anyway.
        """
        others = [path.stem for path in self._sockets.glob("*.sock") if path.stem not in kept]
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
            for key in list(self._attempts.orders):
                self._attempts.forget(key)
            self._neighbours.close()
        for path in (*self._sockets.glob("*.sock"), self._sockets):
            discard(path)

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


class LocalAgentLink(SocketLink):
    """A connection to an agent process of this machine, which may be a child of this process."""

    def __init__(
        self,
        agent: str,
        path: Path,
        executor: AgentTrialExecutor,
        process: subprocess.Popen[bytes] | None,
        *,
        new: bool,
    ) -> None:
        setup = executor.setup
        hello = Hello(setup.token, setup.experiment_id)
        super().__init__(
            agent=agent, path=path, hello=hello, listener=executor, timeout=setup.agent_timeout, new=new
        )
        self._executor = executor
        self._process = process
        self._killing: asyncio.Task[None] | None = None

    def kill(self) -> None:
        """Kill the process; its socket closes with it."""
        if self._process is not None:
            self._process.kill()
        elif self._killing is None:
            self._killing = self._tasks.start(self._end_process(0.0))

    async def _end_process(self, patience: float) -> None:
        """Wait until the process is gone; kill it after `patience` seconds."""
        if self._process is not None:
            await _end_child(self._process, patience)
            return
        hello = self._hello.result() if self._hello.done() and self._hello.exception() is None else None
        # An agent that was stopped before it could say hello is found by its command line.
        find = partial(_find_agent, self._agent, self._executor.setup.folder)
        pid = await in_thread_or_here(find) if hello is None else int(hello["pid"])
        if pid is not None:
            await _end_stranger(pid, patience)

    async def close(self, grace: float) -> None:
        """Ask the agent to shut down, and kill it if it does not."""
        self.send(Shutdown())
        self.flush()
        await self.wait_closed(grace + _SHUTDOWN_MARGIN)
        await self._end_process(_EXIT_MARGIN)

    async def why_lost(self, reason: str) -> str:
        """End the agent if it lives; return how it ended, if it is a child that ended by itself, else `reason`.

        It ends before its trial does: otherwise it would record that the trial was killed.
        """
        if self._killing is not None:
            await self._killing
        ended_by_itself = self._process is not None and await _has_ended(self._process, _EXIT_MARGIN)
        await self._end_process(0.0)
        await self._executor.end_orphans(self._agent)
        if self._process is None or self._given_up or not ended_by_itself:
            return reason
        code = self._process.returncode
        how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
        return f"its agent {how}"


def _find_agent(agent: str, folder: Path) -> int | None:
    """Return the process of an agent of an experiment; None if there is none."""
    mine = ["--agent", agent], ["--folder", str(folder)]
    for pid in psutil.pids():
        line = command_words(pid)
        options = [line[at : at + 2] for at in range(len(line))]
        if "pitchpipe.trial_agent" in line and all(each in options for each in mine):
            return pid
    return None


async def _end_child(process: subprocess.Popen[bytes], patience: float) -> None:
    """Wait for the end of an agent that this process started; kill it after `patience` seconds."""
    if not await _has_ended(process, patience):
        process.kill()
        await in_thread_or_here(process.wait)


async def _has_ended(process: subprocess.Popen[bytes], patience: float) -> bool:
    """Return whether a child has ended, or ends within `patience` seconds."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        await in_thread_or_here(partial(process.wait, patience))
    return process.poll() is not None


async def _end_stranger(pid: int, patience: float) -> None:
    """Wait for the end of an agent that an earlier manager started; kill it after `patience` seconds."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if "trial_agent" not in " ".join(process.cmdline()):
            return  # another process has its id now
        try:
            await in_thread_or_here(partial(process.wait, patience))
        except psutil.TimeoutExpired:
            process.kill()
            with contextlib.suppress(psutil.TimeoutExpired):
                await in_thread_or_here(partial(process.wait, _EXIT_MARGIN))
