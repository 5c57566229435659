"""The processes of an experiment on the simulated machine: agents, the dispatcher, trials, and how they are ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import edges
import psutil
import simulated_trial
from edges import machine
from machine import Process

__all__ = ["install", "living"]

_WATCHDOG = 0.2  # seconds after which a watchdog has ended the trial of a dead agent, at most


def living(role: str = "") -> list[Process]:
    """Return the processes that run, of one role or all."""
    return [
        each for each in machine().processes.values() if each.is_alive and each.role in (role or each.role)
    ]


def _living(pid: int) -> Process:
    process = machine().processes.get(pid)
    if process is None or not process.is_alive:
        raise ProcessLookupError(pid)
    return process


# ---------------------------------------------------------------------- calls to the kernel about processes


def _getpid() -> int:
    return machine().current.process.pid


def _kill(pid: int, number: int) -> None:
    if number:
        machine().kill(_living(pid), number)


def _killpg(group: int, number: int) -> None:
    members = [each for each in living() if each.group == group]
    if not members:
        raise ProcessLookupError(group)
    for each in members:
        machine().kill(each, number)


def _waitpid(pid: int, options: int) -> tuple[int, int]:
    process = machine().processes[pid]
    machine().wait(lambda: not process.is_alive)
    code = process.returncode or 0
    return pid, -code if code < 0 else code << 8


def _exit(code: int) -> None:
    machine().end(machine().current.process, code)


class Child:
    """What `subprocess.Popen` returns: a simulated process that its parent can wait for."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.returncode

    def poll(self) -> int | None:
        return self.process.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not machine().wait(lambda: not self.process.is_alive, timeout):
            raise subprocess.TimeoutExpired(self.process.name, timeout or 0.0)
        return self.process.returncode or 0

    def kill(self) -> None:
        if self.process.is_alive:
            machine().kill(self.process)


class _Psutil:
    """What the product asks psutil about agents that are not its children."""

    NoSuchProcess, TimeoutExpired, Error = psutil.NoSuchProcess, psutil.TimeoutExpired, psutil.Error

    @staticmethod
    def pids() -> list[int]:
        return [process.pid for process in living()]

    class Process:
        def __init__(self, pid: int) -> None:
            if pid not in machine().processes or not machine().processes[pid].is_alive:
                raise psutil.NoSuchProcess(pid)
            self._process = machine().processes[pid]

        def cmdline(self) -> list[str]:
            return _command_words(self._process.pid)

        def wait(self, timeout: float | None = None) -> None:
            if not machine().wait(lambda: not self._process.is_alive, timeout):
                raise psutil.TimeoutExpired(timeout, self._process.pid)

        def kill(self) -> None:
            if self._process.is_alive:
                machine().kill(self._process)


def _command_words(pid: int) -> list[str]:
    process = machine().processes.get(pid)
    return list(getattr(process, "words", [])) if process is not None and process.is_alive else []


# ---------------------------------------------------------------------- agents


def _popen(words: Sequence[str], **options: Any) -> Child:
    """Start an agent, the one program that the manager starts."""
    assert "pitchpipe.trial_agent" in words, words
    at = machine()
    at.step("spawn")
    named = dict(zip(words[4::2], words[5::2], strict=True))
    process = at.process("agent", f"agent {named['--agent']}")
    process.words = list(words)  # type: ignore[attr-defined]
    process.speed = at.draw.choice((0.2, 1.0, 1.0, 3.0))
    listener = socket.socket(fileno=os.dup(int(named["--listen-fd"])))
    process.at_end.append(listener.close)
    token = options["env"]["PITCHPIPE_AGENT_TOKEN"]
    at.spawn(process, "main", _agent, process, named["--agent"], named["--folder"], listener, token)
    return Child(process)


def _agent(process: Process, name: str, folder: str, listener: socket.socket, token: str) -> None:
    """Do what `python -m pitchpipe.trial_agent` does."""
    from pitchpipe.sdk import TrialStopped
    from pitchpipe.trial_agent.core import LAST_RESORT, Agent
    from pitchpipe.trial_agent.unix_server import UnixServer

    at = machine()
    at.sleep(at.draw.uniform(0.05, 0.5))  # to import its modules
    agent = Agent(name, Path(folder, "agents"), clock=time.time, environment={"PATH": "/usr/bin:/bin"})
    process.agent = agent  # type: ignore[attr-defined]
    server = UnixServer(agent, listener, token)
    process.server = server  # type: ignore[attr-defined]
    main = at.current

    def interrupt() -> None:
        """Do what SIGTERM does to Python code; what calls C does not notice it."""
        if is_interruptible and agent.in_user_code:
            main.interrupt = TrialStopped()

    is_interruptible = at.draw.random() < 0.5
    agent.interrupt = interrupt

    def close() -> None:
        """Do what the kernel does for a process that is gone."""
        for connection in [*server._strangers.values(), server._manager]:
            if connection is not None:
                connection.socket.close()
        for each in (agent._tools.watch, agent._tools.wake, server._wake):
            with suppress(OSError):
                each.close()

    process.at_end.append(close)

    def serve() -> None:
        server.serve()
        at.sleep(agent.grace + LAST_RESORT)
        at.end(process, 1)

    serving = at.spawn(process, "server", serve)
    agent.run()
    server.close()
    at.wait(lambda: serving.is_done or server._closing, 1.0)
    at.end(process, 0)


# ---------------------------------------------------------------------- the dispatcher


def _spawn_dispatcher(command: Sequence[str], environment: Mapping[str, str], actions: object) -> Any:
    """Start a dispatcher; what it would print goes nowhere."""
    at = machine()
    at.step("spawn")
    process = at.process("dispatcher", "dispatcher")
    process.speed = at.draw.choice((0.3, 1.0, 3.0))
    reads, we_write = os.pipe()
    we_read, writes = os.pipe()
    restored = Path(command[command.index("--restore") + 1]) if "--restore" in command else None
    at.spawn(process, "main", _dispatcher, process, environment, reads, writes, restored)
    return process.pid, we_read, we_write


def _dispatcher(
    process: Process, environment: Mapping[str, str], reads: int, writes: int, restored: Path | None
) -> None:
    """Do what `python -m pitchpipe.dispatcher` does."""
    from pitchpipe.dispatcher import __main__ as program
    from pitchpipe.dispatcher.channel import FdChannel
    from pitchpipe.dispatcher.dispatcher_settings import (
        DispatcherSettings,
        decode_exp_params,
        dispatcher_from,
    )

    at = machine()
    closed: list[int] = []

    def close() -> None:
        for descriptor in (reads, writes):
            if descriptor not in closed:
                closed.append(descriptor)
                os.close(descriptor)

    process.at_end.append(close)
    at.sleep(at.draw.uniform(0.05, 0.5))
    settings = DispatcherSettings.read(decode_exp_params(environment["PITCHPIPE_EXP_PARAMS"]), environment)
    channel = FdChannel(reads, writes)
    dispatcher = dispatcher_from(settings, channel)
    try:
        program._prepare_checkpoints(dispatcher, restored, synced=settings.synced)
    except program.CheckpointUnusable as error:
        program._send_last(channel, program.CommandType.Checkpoint, {"unusable": error.why}, "why")
        at.end(process, 3)
    ending = dispatcher.run()
    at.end(process, 1 if ending is program.Ending.FAILED else 0)


# ---------------------------------------------------------------------- trials


class Tree:
    """All processes of an attempt."""

    def __init__(self, group: int | None, mark: bytes) -> None:
        self.group, self._mark = group, mark

    def members(self) -> list[int]:
        return [each.pid for each in living("trial") if self._owns(each)]

    def _owns(self, process: Process) -> bool:
        return process.group == self.group or process.mark == self._mark

    def signal_group(self, number: int) -> None:
        if self.group is not None:
            with suppress(ProcessLookupError):
                _killpg(self.group, number)

    def signal_orphans(self, number: int) -> None:
        """Do nothing: no simulated trial leaves its group."""

    def kill(self, deadline: float) -> list[int]:
        at = machine()
        at.wait(lambda: not self.members(), max(0.0, deadline - at.monotonic()))
        for pid in self.members():
            _kill(pid, signal.SIGKILL)
        return []

    def memory(self) -> int:
        return 0

    proportional_memory = memory


class Watchdog:
    """The watchdog of an agent; some are late."""

    def __init__(self) -> None:
        self._mark = b""
        machine().current.process.at_end.append(self._bite)

    def _bite(self) -> None:
        at, mark = machine(), self._mark
        if mark and (pids := Tree(None, mark).members()):
            watchdog = at.process("watchdog", "watchdog")

            def act() -> None:
                at.sleep(at.draw.uniform(0.0, _WATCHDOG))
                for pid in pids:
                    with suppress(ProcessLookupError):
                        _kill(pid, signal.SIGKILL)
                at.end(watchdog, 0)

            at.spawn(watchdog, "main", act)

    def expect(self, mark: bytes) -> None:
        self._mark = mark

    def watch(self, group: int) -> None:
        pass

    def release(self) -> None:
        self._mark = b""

    close = release


class ExitWatch:
    """A descriptor that becomes readable when a process ends."""

    def __init__(self, child: Child) -> None:
        self.descriptor, writer = os.pipe()
        if child.process.is_alive:
            child.process.at_end.append(lambda: os.close(writer))
        else:
            os.close(writer)

    def __enter__(self) -> ExitWatch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def _spawn_trial(launch: Any) -> Child:
    """Start the script of a trial."""
    at = machine()
    at.step("spawn")
    environment = dict(launch.environment)
    environment.pop("PITCHPIPE_CODE_DIR", None)
    name = f"trial {environment['PITCHPIPE_SEQUENCE_ID']}-{environment['PITCHPIPE_ATTEMPT']}"
    process = at.process("trial", name)
    process.mark = launch.mark
    stderr = os.dup(launch.stderr)
    if at.draw.random() < 0.2:
        process.signal_handler = lambda number: None  # it ends when it is killed
    at.spawn(process, "main", simulated_trial.script, process, environment, stderr)
    return Child(process)


def _kill_all(group: int | None, mark: bytes) -> None:
    Tree(group, mark).kill(0.0)


# ---------------------------------------------------------------------- into the product


def install(refused: Callable[[], OSError | None]) -> None:
    """Let the product start simulated processes; `refused` says why the disk takes nothing now."""
    from pitchpipe.executors.local import local_executor
    from pitchpipe.manager import manager, standby
    from pitchpipe.store import folder as store_folder
    from pitchpipe.store import json_lines, manager_process
    from pitchpipe.trial_agent import command_trial, core, disk, poll_sources, processes, watchdog

    kernel = {
        "getpid": _getpid,
        "kill": _kill,
        "killpg": _killpg,
        "waitpid": _waitpid,
        "_exit": _exit,
    }
    edges.put_into_product(kernel, _popen)
    for old, new in (
        (processes.ProcessTree, Tree),
        (processes.WatchdogClient, Watchdog),
        (poll_sources.ExitWatch, ExitWatch),
        (watchdog.kill_all, _kill_all),
        (command_trial.spawn, _spawn_trial),
        (standby.spawn, _spawn_dispatcher),
        (processes.command_words, _command_words),
    ):
        edges.replace_everywhere(old, new)
    local_executor.psutil = _Psutil  # type: ignore[assignment]
    manager.start_facts = lambda directory: SimpleNamespace(stored=lambda: ("{}", ""))  # type: ignore[assignment]
    manager_process._seconds = time.monotonic  # type: ignore[assignment]
    core.socket = edges.copied(socket, gethostname=lambda: "simulated")  # type: ignore[assignment]
    store_folder.FileLock = edges.FileLock  # type: ignore[assignment,misc]
    json_lines.socket = edges.copied(socket, socket=edges.Socket)  # type: ignore[assignment]
    edges.replace_everywhere(disk.disk_error, lambda folder: refused())
    processes.oom_kills = command_trial.oom_kills = lambda *_: 0
