"""Where the keeper of the private Ray has its files, what it writes there, and how leftovers are removed.

All of it is in the runtime directory, except Ray's own temporary folder: Ray writes logs and spilled objects
there and appends some 65 bytes to its name for sockets, whose paths may have 107 bytes.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from ...store import runtime_directory

__all__ = [
    "KeeperPlace",
    "KeeperState",
    "StartLock",
    "make_temp_directory",
    "remove_leftovers",
    "remove_session",
    "session_processes",
]

TEMP_PREFIX = "pitchpipe-ray-"
# What Ray appends: "/session_<date>_<time>_<microseconds>_<pid>/sockets/plasma_store.<n>".
_RAY_SOCKET_SUFFIX = 70
_SOCKET_LIMIT = 103  # macOS; Linux allows 107
_LOOKS = 10


@dataclass(frozen=True, slots=True)
class KeeperState:
    """What the keeper tells the world while it lives; `address` is empty until its Ray stands."""

    pid: int
    created: float
    temp_dir: str
    address: str = ""
    token_path: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    resources: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeeperPlace:
    """The files of the one keeper of a runtime directory."""

    directory: Path

    @classmethod
    def current(cls) -> KeeperPlace:
        """Return the place in the user's runtime directory."""
        return cls(runtime_directory())

    @property
    def state(self) -> Path:
        """Who the keeper is (JSON); there while it lives."""
        return self.directory / "ray-keeper.json"

    @property
    def socket(self) -> Path:
        """Where managers ask for leases."""
        return self.directory / "ray-keeper.sock"

    @property
    def lock(self) -> Path:
        """Held while a keeper is being started, and by a keeper that leaves until it is gone."""
        return self.directory / "ray-keeper.lock"

    @property
    def log(self) -> Path:
        """What the keeper printed; removed when it leaves in order."""
        return self.directory / "ray-keeper.log"

    def read_state(self) -> KeeperState | None:
        """Return what the last keeper wrote; None if there is nothing or nothing that can be read."""
        try:
            return KeeperState(**json.loads(self.state.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def write_state(self, state: KeeperState) -> None:
        """Write the state, all or nothing."""
        draft = self.state.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(asdict(state)), encoding="utf-8")
        draft.replace(self.state)


class StartLock:
    """An advisory lock on a file that the kernel drops with its holder's process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        """Take the lock unless somebody has it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    async def take(self, timeout: float) -> None:
        """Wait for the lock (the kernel cannot wake an event loop for it); raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while not self.try_take():
            if time.monotonic() > deadline:
                raise TimeoutError
            await asyncio.sleep(0.02)

    def release(self) -> None:
        """Let others have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def make_temp_directory() -> Path:
    """Return a new folder for Ray, with a name so short that its socket paths fit."""
    folder = tempfile.gettempdir()
    if len(folder) + len(TEMP_PREFIX) + 9 + _RAY_SOCKET_SUFFIX > _SOCKET_LIMIT:
        folder = "/tmp"
    return Path(tempfile.mkdtemp(prefix=TEMP_PREFIX, dir=folder))


def session_processes(temp_dir: str) -> list[psutil.Process]:
    """Return the processes of a Ray session, and their descendants.

    They are known by the session's folder: it is in their command line, or (workers and helpers that call
    themselves `ray::...`) they hold log files in it.
    """
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and _belongs_to(process, temp_dir):
                found.update({each.pid: each for each in (process, *process.children(recursive=True))})
        except psutil.Error:
            continue
    found.pop(os.getpid(), None)
    return list(found.values())


def _belongs_to(process: psutil.Process, temp_dir: str) -> bool:
    command = process.cmdline()
    if any(temp_dir in argument for argument in command):
        return True
    if not command or not command[0].startswith("ray::"):
        return False
    return any(file.path.startswith(temp_dir + os.sep) for file in process.open_files())


def remove_leftovers(place: KeeperPlace) -> None:
    """Remove what a keeper that did not leave in order left behind; the caller holds the lock."""
    state = place.read_state()
    if state is not None and _is_ours(Path(state.temp_dir)):
        _kill(_keeper(state))
        remove_session(state.temp_dir)
    for path in (place.socket, place.state):
        path.unlink(missing_ok=True)


def remove_session(temp_dir: str) -> None:
    """Kill what runs in a Ray session whose keeper is gone, and remove the session's folder."""
    for _ in range(_LOOKS):
        processes = session_processes(temp_dir)
        if not processes:
            break
        _kill(processes)  # what they have started meanwhile is found the next time
    shutil.rmtree(temp_dir, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    # The state file is believed only where a mistake cannot do harm.
    try:
        return folder.name.startswith(TEMP_PREFIX) and folder.lstat().st_uid == os.getuid()
    except OSError:
        return False


def _keeper(state: KeeperState) -> list[psutil.Process]:
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
