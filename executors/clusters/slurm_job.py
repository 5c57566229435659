"""An experiment as a batch job of Slurm: the script, and its submission."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_WARNING = 120  # seconds before the end of the job's time in which it asks to be requeued

_NOT_A_LOGIN_NODE = (
    "this machine belongs to no cluster, or its controller does not answer; submit on a login node,"
    " or see the script by --print"
)
# What Slurm's programs say -> what to do.
_ADVICE = {
    "Could not establish a configuration source": _NOT_A_LOGIN_NODE,
    "Unable to contact slurm controller": _NOT_A_LOGIN_NODE,
}


class SlurmError(Exception):
    """Slurm is missing, or refuses; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """What is submitted: an experiment of a config, on so many nodes, with further options of `sbatch`.

    `overrides` are fields of the config, as `--set` takes them.
    """

    experiment_id: str
    config: Path
    directory: Path
    nodes: int
    options: Sequence[str] = ()
    overrides: Sequence[str] = ()

    @property
    def log(self) -> Path:
        """Where the job writes."""
        return self.directory / f"slurm-{self.experiment_id}.log"


def batch_script(job: SlurmJob) -> str:
    """Return the script of a job; an option that the user gives replaces a default.

    >>> job = SlurmJob(experiment_id="e", config=Path("/w/e.yml"), directory=Path("/w"), nodes=2, options=["time=60"])
    >>> print(*batch_script(job).splitlines()[:4], sep="\\n")
    #!/bin/bash
    #SBATCH --job-name=pitchpipe-e
    #SBATCH --nodes=2
    #SBATCH --ntasks-per-node=1
    """
    defaults = [
        f"job-name=pitchpipe-{job.experiment_id}",
        f"nodes={job.nodes}",
        "ntasks-per-node=1",
        "requeue",
        "open-mode=append",
        f"signal=B:TERM@{_WARNING}",
        f"output={job.log}",
    ]
    given = {option.partition("=")[0] for option in job.options}
    options = [*(option for option in defaults if option.partition("=")[0] not in given), *job.options]
    command = [sys.executable, "-P", "-m", f"{__package__}.allocation"]
    command += [str(job.config), job.experiment_id, str(job.directory), *job.overrides]
    return "\n".join(
        [
            "#!/bin/bash",
            *(f"#SBATCH --{option}" for option in options),
            "",
            "# Starts Ray on all nodes of the job, and runs or resumes the experiment.",
            f"exec {shlex.join(command)}",
            "",
        ]
    )


def submit(job: SlurmJob) -> tuple[str, str]:
    """Submit a job; return its number, and a warning if its partition cancels the jobs that it preempts.

    Raise `SlurmError` if Slurm refuses the job, or would not requeue it: it is held until that is known.
    """
    if shutil.which("sbatch") is None:
        hint = "submit on a login node of the cluster, or see the script by --print"
        raise SlurmError(f"there is no sbatch here: {hint}")
    job.directory.mkdir(parents=True, exist_ok=True)
    said = _slurm(["sbatch", "--parsable", "--hold"], batch_script(job))
    number = said.strip().partition(";")[0]
    about_job = _slurm(["scontrol", "show", "job", "--oneliner", number])
    if re.search(r"\bRequeue=1\b", about_job) is None:
        _slurm(["scancel", number])
        raise SlurmError(
            "Slurm would not requeue the job when it is preempted or out of time (Requeue=0), so it was not started:"
            " remove the option no-requeue, or ask the administrators"
        )
    warning = _about_partition(job, about_job)
    _slurm(["scontrol", "release", number])
    return number, warning


def _about_partition(job: SlurmJob, about_job: str) -> str:
    """Return a warning if the partition of a job cancels the jobs that it preempts; `about_job` describes the job."""
    match = re.search(r"\bPartition=(\S+)", about_job)
    partition = match[1] if match else ""
    if "PreemptMode=CANCEL" not in _slurm(["scontrol", "show", "partition", "--oneliner", partition]):
        return ""
    again = f"submit it again with --experiment-id {job.experiment_id}, which resumes the experiment"
    return f"partition {partition} may cancel the job instead of requeueing it: then {again}"


def _slurm(command: Sequence[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        advice = next((f": {what}" for said, what in _ADVICE.items() if said in done.stderr), "")
        raise SlurmError(f"{command[0]} failed: {why}{advice}")
    return done.stdout
