"""What a lost agent leaves behind on its node: processes that must report no more, and files.

Swept up on the node itself: here, or by a Ray task that runs there.
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

from ...trial_agent import REPORTS as REPORTS_VARIABLE
from ...trial_agent import kill_all, mark
from .files import pack, working_folder

__all__ = ["Remains", "Whereabouts", "sweep", "sweep_there"]

_log = logging.getLogger(__name__)

# A task needs a worker, which may have to be started first.
_TASK_TIMEOUT = 15.0
_GONE_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where an agent runs: its node, by Ray's id and the name of the machine, and its process.

    `folder` is where it works if that is not the experiment's folder.
    """

    node: str
    host: str
    pid: int
    created: float
    folder: str | None = None

    @classmethod
    def here(cls, folder: str | None) -> Whereabouts:
        """Those of this process, a Ray worker."""
        created = psutil.Process().create_time()
        return cls(_this_node(), socket.gethostname(), os.getpid(), created, folder)

    @property
    def is_this_machine(self) -> bool:
        """Is it the machine of this process?"""
        return self.host == socket.gethostname()


@dataclass(frozen=True, slots=True)
class Remains:
    """What a lost agent may have left: `spools` of its attempts and `names` of files, relative to its folder.

    `spools` is empty for attempts that ran in the agent's process. `folder` is the experiment's.
    """

    agent: str
    folder: str
    spools: Sequence[str]
    names: Sequence[str]


def sweep(remains: Remains, where: Whereabouts | None) -> bytes:
    """Kill what a lost agent left running on this machine; take the files of one in its own folder, packed."""
    if where is not None:
        _kill_agent(where)
    away = where.folder if where is not None else None
    away = away or working_folder(remains.folder, "nobody/has/this", remains.agent, os.environ)
    for folder in (remains.folder, away):
        for spool in remains.spools:
            _end_reporters(os.path.join(folder, spool))
    if away == remains.folder or not os.path.isdir(away):
        return b""
    data = pack(away, remains.names)
    shutil.rmtree(away, ignore_errors=True)
    return data


def sweep_there(remains: Remains, where: Whereabouts | None, node: str) -> bytes:
    """The same on another node; nothing if that is gone. Blocks, but not for ever."""
    ray: Any = importlib.import_module("ray")
    affinity: Any = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    task = ray.remote(num_cpus=0, max_retries=0)(sweep)
    there = task.options(scheduling_strategy=affinity(node, soft=False)).remote(remains, where)
    try:
        return ray.get(there, timeout=_TASK_TIMEOUT)
    except ray.exceptions.RayError as error:
        _log.info("nothing is swept up on node %s: %s", node, type(error).__name__)
        return b""


def _end_reporters(spool: str) -> None:
    """Kill whatever may report into a spool, and wait until it is gone: one that is being killed still writes."""
    deadline = time.monotonic() + _GONE_TIMEOUT
    kill_all(None, mark(spool))
    while any(_reports_to(process) == spool for process in psutil.process_iter()):
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)  # none of them is our child: nobody tells


def _reports_to(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(REPORTS_VARIABLE)
    except (psutil.Error, OSError):  # gone, or as good as gone, or another user's
        return None


def _kill_agent(where: Whereabouts) -> None:
    """Kill the process of an agent; it may be stopped, or out of reach of its Ray."""
    try:
        process = psutil.Process(where.pid)
        if abs(process.create_time() - where.created) < 1.0 and process.cmdline()[:1] != []:
            process.kill()
            process.wait(1.0)
    except psutil.Error:
        return


def _this_node() -> str:
    ray: Any = importlib.import_module("ray")
    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
