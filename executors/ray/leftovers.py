"""What a lost agent leaves on its node: processes that must not report any more, and files.

They are removed on the node itself: by this process, or by a Ray task that runs there.
"""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from ...trial_agent import ProcessTree, mark
from .file_transfer import pack, working_folder

_log = logging.getLogger(__name__)

# A task needs a worker, which may have to be started first.
_TASK_TIMEOUT = 15.0


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
