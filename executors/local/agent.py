"""A line to an agent process of this machine, and how such a process is found and ended."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from pathlib import Path

import psutil

from ...trial_agent import Hello, Shutdown
from ..agents import AgentTrialExecutor
from ..socket_link import SocketLink

__all__ = ["LocalAgentLink"]

# An agent that is told to shut down and does not is killed so long after the grace of its trial.
_SHUTDOWN_MARGIN = 2.0
# Between the closing of a socket and the end of its process.
_EXIT_MARGIN = 1.0


class LocalAgentLink(SocketLink):
    """A line to an agent process of this machine, which may be our child."""

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
        super().__init__(agent, path, hello, executor, setup.agent_timeout, new=new)
        self._executor = executor
        self._process = process
        self._killing: asyncio.Task[None] | None = None

    def kill(self) -> None:
        """Kill the process; its socket closes with it."""
        if self._process is not None:
            self._process.kill()
        elif self._killing is None:
            self._killing = self._loop.create_task(self._end_process(0.0))

    async def _end_process(self, patience: float) -> None:
        """Kill the process if it is still there after `patience` seconds; returns when it is gone."""
        if self._process is not None:
            await _end_child(self._process, patience)
            return
        told = self._hello.result() if self._hello.done() and self._hello.exception() is None else None
        # One that was stopped before it could say hello is found by what it was started with.
        pid = await asyncio.to_thread(self._find) if told is None else int(told["pid"])
        if pid is not None:
            await _end_stranger(pid, patience)

    def _find(self) -> int | None:
        """Return the process of this agent; None if there is none."""
        mine = ["--agent", self._agent], ["--folder", str(self._executor.setup.folder)]
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or []
            options = [line[at : at + 2] for at in range(len(line))]
            if "pitchpipe.trial_agent" in line and all(each in options for each in mine):
                return process.pid
        return None

    async def close(self, grace: float) -> None:
        """Ask the agent to shut down, and kill it if it does not."""
        self.send(Shutdown())
        await self.wait_closed(grace + _SHUTDOWN_MARGIN)
        await self._end_process(_EXIT_MARGIN)

    async def why_lost(self, reason: str) -> str:
        """Say how our child ended, if it is ours: its socket is closed, so it has ended or is about to, or is ended."""
        await self._executor.end_strays(self._agent)
        if self._killing is not None:
            await self._killing
        ended_by_itself = await self._has_ended()
        await self._end_process(0.0)
        if self._process is None or self._given_up or not ended_by_itself:
            return reason
        code = self._process.returncode
        return (
            f"its agent ended with exit code {code}"
            if code >= 0
            else f"its agent was killed by signal {-code}"
        )

    async def _has_ended(self) -> bool:
        """Has our child ended, now or in a moment?"""
        if self._process is None:
            return False
        try:
            await asyncio.to_thread(self._process.wait, _EXIT_MARGIN)
        except subprocess.TimeoutExpired:
            return False
        return True


async def _end_child(process: subprocess.Popen[bytes], patience: float) -> None:
    """Kill an agent that was started here, if it is still there after `patience` seconds."""
    if process.poll() is None:
        try:
            await asyncio.to_thread(process.wait, patience)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)


async def _end_stranger(pid: int, patience: float) -> None:
    """Kill an agent that an earlier manager started, if it is still there after `patience` seconds."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if "trial_agent" not in " ".join(process.cmdline()):
            return  # its process id belongs to somebody else by now
        try:
            await asyncio.to_thread(process.wait, patience)
        except psutil.TimeoutExpired:
            process.kill()
            with contextlib.suppress(psutil.TimeoutExpired):
                await asyncio.to_thread(process.wait, _EXIT_MARGIN)
