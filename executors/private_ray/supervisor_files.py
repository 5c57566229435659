"""The files of the private Ray's supervisor, its state and lock, and the removal of what it leaves behind.

All files are in the runtime directory, except Ray's own temporary folder, for logs, spilled objects and sockets.
Ray appends some 65 bytes to that folder's name for a socket, whose path may have 107 bytes.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict, final

import psutil

from ...store import folder_for_sockets, runtime_directory
from ...trial_agent import command_words

TEMP_PREFIX = "pitchpipe-ray-"
# What Ray appends: "/session_<date>_<time>_<microseconds>_<pid>/sockets/plasma_store.<n>".
_RAY_SOCKET_SUFFIX = 70
_KILL_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorState:
    """What the supervisor publishes while it lives; `address` is empty until its Ray has started."""

    pid: int
    created: float
    temp_dir: str
    address: str = ""
    token_path: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    resources: dict[str, float] = field(default_factory=dict)


@final
class RayStatus(TypedDict):
    """What a supervisor says of its Ray; `agents` are those of experiments, each with its namespace."""

    pid: int
    address: str
    since: float
    temp_dir: str
    versions: dict[str, str]
    leases: int
    idle_timeout: float
    seconds_left: float | None
    agents: list[str]


@final
class StartingRay(TypedDict):
    """What is known of a Ray that starts."""

    pid: int
    starting: bool


class SupervisorFiles:
    """The files of the one supervisor of a runtime directory; other versions of Pitchpipe use the same names.

    `state` (JSON) exists while the supervisor lives; `log`, what it prints, is removed at an orderly end. `socket` is
    where managers ask for leases. `lock` is held while a supervisor starts, and by one that ends until it is gone.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "private-ray.json"
        self.socket = directory / "private-ray.sock"
        self.lock = directory / "private-ray.lock"
        self.log = directory / "private-ray.log"

    @classmethod
    def current(cls) -> SupervisorFiles:
        """Return those in the user's runtime directory."""
        return cls(runtime_directory())

    def read_state(self) -> SupervisorState | None:
        """Return what the last supervisor wrote; None if that is missing or unreadable."""
        try:
            return SupervisorState(**json.loads(self.state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write_state(self, state: SupervisorState) -> None:
        """Write the state atomically."""
        draft = self.state.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(state)), encoding="utf-8")
        draft.replace(self.state)


class StartLock:
    """An advisory lock on a file, which the kernel releases when its holder's process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Take the lock and return True, or return False if another process has it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    async def take(self, timeout: float) -> None:
        """Wait for the lock; raise `TimeoutError` after `timeout` seconds. It polls: there is no event to await."""
        deadline = time.monotonic() + timeout
        while not self.try_take():
            if time.monotonic() > deadline:
                raise TimeoutError
            await asyncio.sleep(0.02)

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def versions_here() -> dict[str, str]:
    """Return what must be equal in all processes that use one Ray, by name, without importing Ray."""
    return {"Ray": version("ray"), "Python": platform.python_version(), "environment": sys.prefix}


def make_temp_directory() -> Path:
    """Make a folder for Ray whose name is short enough for socket paths, and return it."""
    room = len(TEMP_PREFIX) + 9 + _RAY_SOCKET_SUFFIX
    return Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=folder_for_sockets(room)))


def session_processes(temp_dir: str) -> list[psutil.Process]:
    """Return the processes of a Ray session, and their descendants.

    The session's folder identifies them: it is in their command line, or, for workers and helpers named
    `ray::...`, they hold log files in it.
    """
    processes: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and _belongs_to(process, temp_dir):
                processes.update({each.pid: each for each in (process, *process.children(recursive=True))})
        except psutil.Error:
            continue
    processes.pop(os.getpid(), None)
    return list(processes.values())


def _belongs_to(process: psutil.Process, temp_dir: str) -> bool:
    command = command_words(process.pid)
    if any(temp_dir in argument for argument in command):
        return True
    if not command or not command[0].startswith("ray::"):
        return False
    return any(file.path.startswith(temp_dir + os.sep) for file in process.open_files())


def remove_leftovers(files: SupervisorFiles) -> None:
    """Remove what a killed supervisor left behind; the caller holds the lock."""
    state = files.read_state()
    if state is not None and _is_ours(Path(state.temp_dir)):
        _kill(_supervisor(state))
        remove_session(state.temp_dir)
    for path in (files.socket, files.state):
        path.unlink(missing_ok=True)


def remove_session(temp_dir: str) -> None:
    """Kill what runs in a Ray session without a supervisor, and remove the session's folder."""
    for _ in range(_KILL_ROUNDS):
        processes = session_processes(temp_dir)
        if not processes:
            break
        _kill(processes)  # the next look finds what they have started meanwhile
    shutil.rmtree(temp_dir, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    # The state file may be wrong: only a folder that can be nothing else is removed.
    try:
        return folder.name.startswith(TEMP_PREFIX) and folder.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _supervisor(state: SupervisorState) -> list[psutil.Process]:
    try:
        process = psutil.Process(state.pid)
        same = abs(process.create_time() - state.created) < 1.0 and process.uids().real == os.getuid()
    except psutil.Error:
        return []
    return [process] if same and state.pid != os.getpid() else []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(processes, timeout=5.0)
