"""The environment variables that an agent sets for a trial, and the environment that a trial gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

__all__ = [
    "ATTEMPT",
    "BUDGET",
    "CHECKPOINT",
    "CHECKPOINTS",
    "EXPERIMENT_ID",
    "FUNCTIONS",
    "LAUNCHES",
    "OUTPUT_DIRECTORY",
    "OWN_PREFIX",
    "PARAMETERS",
    "RAY_PREFIX",
    "REPORTS",
    "SEED",
    "SEQUENCE_ID",
    "TOKEN",
    "TRIAL_ID",
    "base_environment",
    "limited_threads",
    "mark",
    "rank_in",
    "starting_environment",
    "visible_devices",
]

REPORTS = "PITCHPIPE_REPORTS"  # path of the spool to which reports are appended
PARAMETERS = "PITCHPIPE_PARAMETERS"  # path of the parameter record (JSON)
OUTPUT_DIRECTORY = "PITCHPIPE_OUTPUT_DIR"  # the trial's own folder
CHECKPOINT = "PITCHPIPE_CHECKPOINT"  # path of the checkpoint from which the attempt continues
CHECKPOINTS = "PITCHPIPE_CHECKPOINTS"  # path of the folder into which checkpoints are saved
BUDGET = "PITCHPIPE_BUDGET"  # how long to train, in the unit of the tuner
SEED = "PITCHPIPE_SEED"  # of this repeat of the configuration
EXPERIMENT_ID = "PITCHPIPE_EXPERIMENT_ID"
TRIAL_ID = "PITCHPIPE_TRIAL_ID"
ATTEMPT = "PITCHPIPE_ATTEMPT"
SEQUENCE_ID = "PITCHPIPE_SEQUENCE_ID"
FUNCTIONS = "PITCHPIPE_FUNCTIONS"  # the process that calls a trial function now, for its children
TOKEN = "PITCHPIPE_AGENT_TOKEN"  # read by an agent at its start and removed at once

_THREADS = (  # how many threads numerical libraries start: torch, MKL, OpenBLAS, BLIS, Accelerate, numexpr
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
OWN_PREFIX = "PITCHPIPE_"
RAY_PREFIX = "RAY_"

LAUNCHES = "PITCHPIPE_OUTER_LAUNCHES"  # of MPI and Slurm: those that started the agent itself

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
# These the programs of a launch need, so they stay; a launch is known by their values and those of the others.
_LAUNCHES = {
    "PMIX_RANK": ("PMIX_NAMESPACE",),
    "PMI_RANK": ("PMI_FD", "PMI_PORT"),
    "SLURM_PROCID": ("SLURM_JOB_ID", "SLURM_STEP_ID"),
}
_RANKS = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")


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
        if not name.startswith((OWN_PREFIX, RAY_PREFIX)) and name not in _OF_TEAM
    }
    folder = os.path.dirname(python)
    others = [entry for entry in kept.get("PATH", os.defpath).split(os.pathsep) if entry != folder]
    outer = [launch for name in _LAUNCHES if (launch := _launch(name, kept))]
    more = {LAUNCHES: " ".join(outer)} if outer else {}
    return {**kept, **more, "PATH": os.pathsep.join([folder, *others])}


def _launch(rank: str, environment: Mapping[str, str]) -> str:
    """Return what tells one launch by MPI or Slurm from another; an empty text without one.

    >>> _launch("SLURM_PROCID", {"SLURM_PROCID": "3", "SLURM_STEP_ID": "0"})
    'SLURM_PROCID=3,SLURM_STEP_ID=0'
    """
    names = (rank, *_LAUNCHES[rank]) if rank in environment else ()
    return ",".join(f"{name}={environment[name]}" for name in names if name in environment)


def rank_in(environment: Mapping[str, str]) -> str:
    """Return the rank of this process among those of its trial, "0" if it is the only one.

    `RANK` is set by torchrun, accelerate, deepspeed and the trials of several processes. The default launcher of
    Lightning sets the ranks of the node and within it. An agent that was launched by MPI or Slurm itself hands down
    the variables of its own launch, which say nothing about the trial.

    >>> rank_in({"WORLD_SIZE": "4", "NODE_RANK": "0", "LOCAL_RANK": "2"}), rank_in({"OMPI_COMM_WORLD_RANK": "1"})
    ('2', '1')
    >>> rank_in({"SLURM_PROCID": "3"}), rank_in({"SLURM_PROCID": "3", LAUNCHES: "SLURM_PROCID=3"})
    ('3', '0')
    """
    if "WORLD_SIZE" in environment:
        if "RANK" in environment:
            return environment["RANK"]
        if "LOCAL_RANK" in environment:
            node, local = environment.get("NODE_RANK", "0"), environment["LOCAL_RANK"]
            return local if node == "0" else f"{local} of node {node}"
    outer = environment.get(LAUNCHES, "").split()
    own = [name for name in _LAUNCHES if _launch(name, environment) not in outer]
    return next((environment[name] for name in (*_RANKS, *own) if name in environment), "0")


def visible_devices(gpus: Sequence[int | str] | None) -> dict[str, str]:
    """Return the variables that show a trial only these GPUs: None changes nothing, an empty list hides all.

    Numbers are those of nvidia-smi, which CUDA has in another order unless it is set. Texts are words of the user's
    own list, in the order that the user has set.

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
    return os.fsencode(f"{REPORTS}={spool}")
