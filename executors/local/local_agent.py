"""A connection to an agent process of this machine; finds and ends such a process."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from functools import partial
from pathlib import Path

import psutil

from ...trial_agent import Hello, Shutdown, command_words
from ..agents import AgentTrialExecutor
from ..daemon_thread import in_thread_or_here
from ..socket_link import SocketLink

# How long (s) after the grace of its trial an agent that was asked to shut down is killed.
_SHUTDOWN_MARGIN = 2.0
# How long (s) a process may live after its socket is closed.
_EXIT_MARGIN = 1.0


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
        pid = await in_thread_or_here(self._find) if hello is None else int(hello["pid"])
        if pid is not None:
            await _end_stranger(pid, patience)

    def _find(self) -> int | None:
        """Return the process of this agent; None if there is none."""
        mine = ["--agent", self._agent], ["--folder", str(self._executor.setup.folder)]
        for pid in psutil.pids():
            line = command_words(pid)
            options = [line[at : at + 2] for at in range(len(line))]
            if "pitchpipe.trial_agent" in line and all(each in options for each in mine):
                return pid
        return None

    async def close(self, grace: float) -> None:
        """Ask the agent to shut down, and kill it if it does not."""
        self.send(Shutdown())
        self.flush()
        await self.wait_closed(grace + _SHUTDOWN_MARGIN)
        await self._end_process(_EXIT_MARGIN)

    async def why_lost(self, reason: str) -> str:
        """Return how our child ended, if the agent is one and ended by itself, else `reason`; end it if it lives.

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
        return (
            f"its agent ended with exit code {code}"
            if code >= 0
            else f"its agent was killed by signal {-code}"
        )


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
