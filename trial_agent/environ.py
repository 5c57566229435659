"""The environment that a trial gets from its agent."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..sdk import Variables, outer_launches

TOKEN = "PITCHPIPE_AGENT_TOKEN"  # read by an agent at its start and removed at once

_THREADS = (  # how many threads numerical libraries start: torch, MKL, OpenBLAS, BLIS, Accelerate, numexpr
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_PREFIXES = ("PITCHPIPE_", "RAY_")
UNBUFFERED: Mapping[str, str] = MappingProxyType({"PYTHONUNBUFFERED": "1"})
"""What keeps the last output of a script that is killed."""
_OF_TEAM = frozenset(
    (
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "NODE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "HOROVOD_RANK",
        "OMPI_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_RANK",
    )
)


def starting_environment() -> dict[str, str]:
    """Return the environment this process was started with, before anything in it changed `os.environ`.

    Ray sets OMP_NUM_THREADS=1 inside its workers; a trial must not inherit that.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:  # not Linux: the current environment is the best available
        return dict(os.environ)
    pairs = (entry.split(b"=", 1) for entry in entries if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}


def base_environment(environment: Mapping[str, str], python: str = sys.executable) -> dict[str, str]:
    """Return `environment` without what belongs to the agent's own hosts (Ray, an outer experiment or `torchrun`).

    The folder of the agent's own Python comes first on PATH: `python train.py` finds the packages that Pitchpipe
    was installed beside, even if its virtual environment was not activated.

    >>> outer = {"PATH": "/bin", "RANK": "1", "RAY_JOB_ID": "01", "PITCHPIPE_TRIAL_ID": "AbCdE"}
    >>> base_environment(outer, "/venv/bin/python")
    {'PATH': '/venv/bin:/bin'}
    """
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_PREFIXES) and name not in _OF_TEAM
    }
    folder = os.path.dirname(python)
    others = [entry for entry in kept.get("PATH", os.defpath).split(os.pathsep) if entry != folder]
    outer = outer_launches(kept)
    more = {Variables.LAUNCHES: outer} if outer else {}
    return {**kept, **more, "PATH": os.pathsep.join([folder, *others])}


def visible_devices(gpus: Sequence[int | str] | None) -> dict[str, str]:
    """Return the variables that show a trial only these GPUs: None changes nothing, an empty list hides all.

    Numbers are those of nvidia-smi; CUDA orders devices differently unless CUDA_DEVICE_ORDER is set. Texts come from
    the user's own list, and the user has set their order.

    >>> visible_devices([0, 2])
    {'CUDA_VISIBLE_DEVICES': '0,2', 'CUDA_DEVICE_ORDER': 'PCI_BUS_ID'}
    >>> visible_devices(["2", "GPU-8932f937"]), visible_devices([]), visible_devices(None)
    ({'CUDA_VISIBLE_DEVICES': '2,GPU-8932f937'}, {'CUDA_VISIBLE_DEVICES': ''}, {})
    """
    if gpus is None:
        return {}
    has_numbers = any(isinstance(gpu, int) for gpu in gpus)
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
        **({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if has_numbers else {}),
    }


def limited_threads(threads: int | None, *users: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that limit a trial to so many threads; none if a user has set one of them.

    >>> limited_threads(2, {"PATH": "/bin"})["OMP_NUM_THREADS"], limited_threads(2, {"MKL_NUM_THREADS": "8"})
    ('2', {})
    """
    if threads is None or any(name in user for user in users for name in _THREADS):
        return {}
    return dict.fromkeys(_THREADS, str(threads))


def mark(spool: str) -> bytes:
    """Return the environment entry that identifies every process of an attempt, whatever its session.

    No other attempt, experiment or user has the same spool path.

    >>> mark("/exp/trials/0/reports-1.jsonl")
    b'PITCHPIPE_REPORTS=/exp/trials/0/reports-1.jsonl'
    """
    return os.fsencode(f"{Variables.REPORTS}={spool}")
