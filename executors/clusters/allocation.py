"""What the batch script of a Slurm job runs: Ray on the nodes of the allocation, and the manager beside its head.

`python -m pitchpipe.executors.clusters.allocation CONFIG ID DIRECTORY`

The manager is killed when the job must leave, not stopped: a stopped experiment cancels its trials, and a killed one
is resumed with all of them by the next run of the job.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ..private_ray import remove_session
from .node import NodeError, NodeRequest, start_node

_LEFT = 0


def run_in_allocation(command: Sequence[str], *, directory: Path) -> int:
    """Run a command of Pitchpipe with a Ray over the allocation, and return its exit code.

    At SIGTERM the command is killed, and the job is put back into the queue unless it was cancelled. Raise
    `NodeError` if Ray does not start.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        raise NodeError("this runs in a job of Slurm only: pitchpipe slurm submit")
    with _Allocation(job, directory) as allocation:
        return allocation.run(command)


class _Allocation:
    def __init__(self, job: str, directory: Path) -> None:
        self._job = job
        self._log = directory / f"slurm-{job}-nodes.log"
        self._folder = f"/tmp/pitchpipe-slurm-{job}"
        self._token = secrets.token_hex(32)
        self._others: subprocess.Popen[str] | None = None
        self._manager: subprocess.Popen[bytes] | None = None
        self._must_leave = False

    def __enter__(self) -> _Allocation:
        signal.signal(signal.SIGTERM, self._leave)
        remove_session(self._folder)  # of an earlier run of the job on this node
        return self

    def __exit__(self, *_: object) -> None:
        if self._others is not None and self._others.stdin is not None:
            self._others.stdin.close()
        remove_session(self._folder)
        if self._others is not None:
            self._others.wait()

    def run(self, command: Sequence[str]) -> int:
        address = start_node(self._folder, self._token)
        print(f"Ray runs at {address}", flush=True)
        self._start_others(address)
        token = os.path.join(self._folder, "token")
        environment = {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": token}
        if not self._must_leave:
            self._manager = subprocess.Popen(command, env={**os.environ, **environment})
            if self._must_leave:  # the signal came just now
                self._manager.kill()
            code = self._manager.wait()
            if not self._must_leave:
                return code
        return self._requeue()

    def _start_others(self, address: str) -> None:
        """Start Ray on all other nodes; it stays until the end of its input."""
        nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
        if nodes == 1:
            return
        request: NodeRequest = {
            "op": "start",
            "folder": self._folder,
            "token": self._token,
            "address": address,
            "stays": True,
        }
        this, others = os.environ["SLURMD_NODENAME"], nodes - 1
        where = [f"--nodes={others}", f"--ntasks={others}", f"--exclude={this}"]
        with self._log.open("ab") as log:
            self._others = subprocess.Popen(
                ["srun", "--input=all", *where, sys.executable, "-P", "-m", f"{__package__}.node"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
            )
        assert self._others.stdin is not None
        self._others.stdin.write(json.dumps(request) + "\n")
        self._others.stdin.flush()

    def _leave(self, number: int, frame: object) -> None:
        del number, frame
        self._must_leave = True
        if self._manager is not None:
            self._manager.kill()

    def _requeue(self) -> int:
        """Put the job back into the queue, unless Slurm already ends it: cancelled by its user, or preempted."""
        command = ["scontrol", "show", "job", "--oneliner", self._job]
        about_job = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if "JobState=RUNNING" in about_job.stdout:
            print("the job must leave: it is requeued, and the experiment resumed", flush=True)
            subprocess.run(["scontrol", "requeue", self._job], check=False)
        else:  # requeueing would bring a cancelled job back; Slurm itself requeues one that it preempts
            again = "its next run, or a new job with the same --experiment-id, resumes the experiment"
            print(f"Slurm ends the job: {again}", flush=True)
        return _LEFT


def main(config: str, experiment_id: str, directory: str, *overrides: str) -> int:
    """Run the experiment, with some fields of its config replaced, or resume it if it exists."""
    is_new = not Path(directory, experiment_id).exists()
    fields = [word for override in overrides for word in ("--set", override)]
    words = ["run", config, *fields, "--experiment-id"] if is_new else ["resume"]
    command = [sys.executable, "-P", "-m", "pitchpipe", *words, experiment_id, "--dir", directory]
    try:
        return run_in_allocation(command, directory=Path(directory))
    except NodeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
