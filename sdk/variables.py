"""The environment variables by which an agent speaks to a trial, and the ranks that launchers give its processes."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from collections.abc import Mapping


class Variables:
    """The names of the variables."""

    REPORTS = "PITCHPIPE_REPORTS"  # path of the spool to which reports are appended
    PARAMETERS = "PITCHPIPE_PARAMETERS"  # path of the parameter record (JSON)
    OUTPUT_DIRECTORY = "PITCHPIPE_OUTPUT_DIR"  # the trial's own folder
    CODE_DIRECTORY = "PITCHPIPE_CODE_DIR"  # where the user's code is
    CHECKPOINT = "PITCHPIPE_CHECKPOINT"  # path of the checkpoint from which the attempt continues
    CHECKPOINTS = "PITCHPIPE_CHECKPOINTS"  # path of the folder into which checkpoints are saved
    BUDGET = "PITCHPIPE_BUDGET"  # how long to train, in the unit of the tuner
    SEED = "PITCHPIPE_SEED"  # of this repeat of the configuration
    EXPERIMENT_ID = "PITCHPIPE_EXPERIMENT_ID"
    TRIAL_ID = "PITCHPIPE_TRIAL_ID"
    ATTEMPT = "PITCHPIPE_ATTEMPT"
    SEQUENCE_ID = "PITCHPIPE_SEQUENCE_ID"
    FUNCTIONS = "PITCHPIPE_FUNCTIONS"  # the process that calls a trial function now, for its children
    LAUNCHES = "PITCHPIPE_OUTER_LAUNCHES"  # the launches by MPI and Slurm that started the agent itself


# Programs of a launch need these, so a trial inherits them; a launch is recognised by the values in its row.
_LAUNCHES = {
    "PMIX_RANK": ("PMIX_NAMESPACE",),
    "PMI_RANK": ("PMI_FD", "PMI_PORT"),
    "SLURM_PROCID": ("SLURM_JOB_ID", "SLURM_STEP_ID"),
}
_RANKS = ("HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK")


def rank_in(environment: Mapping[str, str]) -> str:
    """Return the rank of this process among those of its trial, "0" if it is the only one.

    `RANK` is set by torchrun, accelerate, deepspeed and the trials of several processes. The default launcher of
    Lightning sets the ranks of the node and within it. An agent that was launched by MPI or Slurm itself hands down
    the variables of its own launch, which say nothing about the trial.

    >>> rank_in({"WORLD_SIZE": "4", "NODE_RANK": "0", "LOCAL_RANK": "2"}), rank_in({"OMPI_COMM_WORLD_RANK": "1"})
    ('2', '1')
    >>> outer = outer_launches({"SLURM_PROCID": "3"})
    >>> rank_in({"SLURM_PROCID": "3"}), rank_in({"SLURM_PROCID": "3", Variables.LAUNCHES: outer})
    ('3', '0')
    """
    if "WORLD_SIZE" in environment:
        if "RANK" in environment:
            return environment["RANK"]
        if "LOCAL_RANK" in environment:
            node, local = environment.get("NODE_RANK", "0"), environment["LOCAL_RANK"]
            return local if node == "0" else f"{local} of node {node}"
    outer = environment.get(Variables.LAUNCHES, "").split()
    own = [name for name in _LAUNCHES if _launch(name, environment) not in outer]
    return next((environment[name] for name in (*_RANKS, *own) if name in environment), "0")


def outer_launches(environment: Mapping[str, str]) -> str:
    """Return what distinguishes the launches by MPI and Slurm that a process belongs to; "" without one.

    >>> outer_launches({"SLURM_PROCID": "3", "SLURM_STEP_ID": "0"})
    'SLURM_PROCID=3,SLURM_STEP_ID=0'
    """
    return " ".join(filter(None, (_launch(name, environment) for name in _LAUNCHES)))


def _launch(rank: str, environment: Mapping[str, str]) -> str:
    names = (rank, *_LAUNCHES[rank]) if rank in environment else ()
    return ",".join(f"{name}={environment[name]}" for name in names if name in environment)
