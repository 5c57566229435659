"""The files of agents on nodes that do not see the experiment's folder: where they are, and how they travel.

A node sees the folder if it finds the manager's mark there, a file. Otherwise its agents work in folders of their own,
laid out like the experiment's, and what trials leave there is fetched. What a lost agent leaves, files and processes
that must no longer report, is removed on its node: by this process, or by a Ray task that runs there.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import logging
import os
import secrets
import shutil
import socket
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ...sdk import remove
from ...store import private_directory
from ...trial_agent import ProcessTree, mark

_log = logging.getLogger(__name__)

# A task needs a worker, which may have to be started first.
_TASK_TIMEOUT = 15.0
NODE_FOLDER = "PITCHPIPE_NODE_FOLDER"
"""Set on a node, names the folder of its agents' files, whether the node sees the experiment's folder or not."""


class SharedMark:
    """A file with an unguessable name: a node that finds it sees the experiment's folder."""

    def __init__(self, folder: Path) -> None:
        for old in folder.glob("agents/.seen-*"):  # of managers that were killed
            old.unlink(missing_ok=True)
        self.name = f"agents/.seen-{secrets.token_hex(8)}"
        self._path = folder / self.name
        self._path.parent.mkdir(exist_ok=True)
        self._path.touch()

    def remove(self) -> None:
        """Remove the file."""
        self._path.unlink(missing_ok=True)


def working_folder(folder: str, mark: str, agent: str, environment: Mapping[str, str]) -> str:
    """Return the folder in which `agent` works on this node: the experiment's, or one of its own.

    >>> folder = tempfile.mkdtemp()
    >>> mark = SharedMark(Path(folder))
    >>> working_folder(folder, mark.name, "0-0", {}) == folder
    True
    >>> working_folder("/exp/k3x9a2bq", "agents/.seen-1f", "0-0", {"PITCHPIPE_NODE_FOLDER": "/scratch"})
    '/scratch/k3x9a2bq-1c6a0c48/0-0'
    """
    base = environment.get(NODE_FOLDER)
    if not base and os.path.exists(os.path.join(folder, mark)):
        return folder
    base = base or os.path.join(tempfile.gettempdir(), f"pitchpipe-{os.getuid()}")
    name = f"{os.path.basename(folder)}-{hashlib.blake2b(os.fsencode(folder), digest_size=4).hexdigest()}"
    return os.path.join(base, name, agent)


def make_working_folder(folder: str, environment: Mapping[str, str]) -> None:
    """Make a `working_folder` for one agent alone; raise `OSError` if other users could change its files."""
    experiment = Path(folder).parent
    hint = f"set {NODE_FOLDER} on this node to a private folder"
    if not environment.get(NODE_FOLDER):
        private_directory(experiment.parent, "folder for trials", hint)
    private_directory(experiment, "folder for trials", hint)
    os.makedirs(folder, exist_ok=True)


def trial_files(sequence_id: int) -> str:
    """Return the path of a trial's folder within either folder."""
    return f"trials/{sequence_id}"


def pack(folder: str, names: Iterable[str]) -> bytes:
    """Return those of the files and folders `names` that exist, and can be read.

    A checkpoint is there as a whole or not at all: one that is being written or removed is left out.
    """
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in names:
            for member, content in _members(archive, folder, name):
                archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def _members(archive: tarfile.TarFile, folder: str, name: str) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Yield a file, or a folder and what it holds, without what its owner removes meanwhile."""
    parts = name.split("/")
    is_checkpoint = len(parts) == 4 and parts[2] == "checkpoints"
    if is_checkpoint and parts[3].startswith("."):
        return
    path = os.path.join(folder, name)
    try:
        member, content, inside = _read(archive, path, name)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("%s cannot be read and is left out: %s", path, error)
        return
    if member is None:
        return
    members = (each for entry in inside for each in _members(archive, folder, f"{name}/{entry}"))
    if is_checkpoint:
        members = iter(list(members))
        if not os.path.isdir(path):  # if it is there now, all of it was: it loses its name first
            return
    yield member, content
    yield from members


def _read(archive: tarfile.TarFile, path: str, name: str) -> tuple[tarfile.TarInfo | None, bytes, list[str]]:
    """Return a member of an archive, the content of a file, and the names in a folder."""
    member = archive.gettarinfo(path, name)  # None for a socket
    if member is not None and member.isdir():
        return member, b"", sorted(os.listdir(path))
    if member is None or not (member.isreg() or member.islnk()):
        return member, b"", []
    member.type = tarfile.REGTYPE  # a hard link, to a file that may be left out
    with open(path, "rb") as file:
        content = file.read()
    member.size = len(content)  # it may have changed since
    return member, content, []


def unpack(data: bytes, folder: Path) -> None:
    """Unpack the result of `pack` into a folder; replace each file atomically."""
    with tempfile.TemporaryDirectory(prefix=".arriving-", dir=folder) as draft:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extraction_filter = _safe  # before 3.11.4 Python has none
            archive.extractall(draft)
        for path in _files(Path(draft)):
            target = folder / path.relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)


def _safe(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Return what may be unpacked; leave out a link that leads elsewhere, a pipe or a device."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.FilterError as error:
        _log.warning("%s is left out: %s", member.name, error)
        return None


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if not path.is_dir())


def forget_checkpoints(folder: Path, attempt: int, kept: Iterable[str]) -> None:
    """Remove the checkpoints of an attempt that its node has not kept; `folder` is the trial's."""
    names = set(kept)
    for path in folder.glob(f"checkpoints/{attempt}-*"):
        if path.name not in names:
            remove(str(path))


# ------------------------------------------------------------------ what a lost agent leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLocation:
    """Where an agent runs: its node, by Ray's id, the host name and the IP address, and its process.

    `folder` is where it works if that is not the experiment's folder, `code_directory` where the trials' code is
    if Ray has shipped it to the node. On its `socket` it expects the manager, if that is on the same node.
    """

    node: str
    host: str
    pid: int
    created: float
    address: str = "127.0.0.1"
    folder: str | None = None
    code_directory: str | None = None
    socket: str | None = None

    @classmethod
    def here(cls, folder: str | None, code_directory: str | None = None) -> AgentLocation:
        """Return that of this process, a Ray worker."""
        ray: Any = importlib.import_module("ray")
        return cls(
            node=ray.get_runtime_context().get_node_id() if ray.is_initialized() else "",
            host=socket.gethostname(),
            pid=os.getpid(),
            created=psutil.Process().create_time(),
            address=ray.util.get_node_ip_address() if ray.is_initialized() else cls.address,
            folder=folder,
            code_directory=code_directory,
        )

    @property
    def is_this_node(self) -> bool:
        """Whether it is on the node to which this process has connected."""
        return self.node == importlib.import_module("ray").get_runtime_context().get_node_id()

    @property
    def is_this_machine(self) -> bool:
        """Whether it is on the machine of this process."""
        return self.host == socket.gethostname()


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a lost agent may have left: `spools` of its attempts and `names` of files, relative to its folder.

    `spools` is empty for attempts that ran in the agent's process. `folder` is the experiment's.
    """

    agent: str
    folder: str
    spools: Sequence[str]
    names: Sequence[str]


def sweep(leftovers: Leftovers, where: AgentLocation | None) -> bytes:
    """Kill what a lost agent left running on this machine; return the files in a folder of its own, packed."""
    if where is not None:
        _kill_agent(where)
    away = where.folder if where is not None else None
    away = away or working_folder(leftovers.folder, "no/such/file", leftovers.agent, os.environ)
    for folder in (leftovers.folder, away):
        for spool in leftovers.spools:
            _end_reporters(os.path.join(folder, spool))
    if away == leftovers.folder or not os.path.isdir(away):
        return b""
    data = pack(away, leftovers.names)
    shutil.rmtree(away, ignore_errors=True)
    return data


def sweep_there(leftovers: Leftovers, where: AgentLocation | None, node: str) -> bytes:
    """Sweep on another node, blocking up to a timeout; return nothing if the node is gone."""
    ray: Any = importlib.import_module("ray")
    affinity: Any = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(num_cpus=0, max_retries=0)(sweep)
    there = task.options(scheduling_strategy=affinity(node, soft=False)).remote(leftovers, where)
    try:
        return ray.get(there, timeout=_TASK_TIMEOUT)
    except ray.exceptions.RayError as error:
        _log.info("cannot sweep up on node %s: %s", node, type(error).__name__)
        return b""


def _end_reporters(spool: str) -> None:
    """Kill all processes that may report to a spool, and wait for their end: until then they may still write."""
    if left := ProcessTree(None, mark(spool)).kill(deadline=time.monotonic()):
        _log.warning("processes that report to %s cannot be ended: %s", spool, left)


def _kill_agent(where: AgentLocation) -> None:
    """Kill the process of an agent, which may be stopped, or out of reach of its Ray."""
    try:
        process = psutil.Process(where.pid)
        if abs(process.create_time() - where.created) < 1.0 and process.status() != psutil.STATUS_ZOMBIE:
            process.kill()
            process.wait(1.0)
    except psutil.Error:
        return
