"""A real Slurm of one node on loopback: munged, slurmctld and slurmd with their files in one folder."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["SlurmServer", "free_ports", "why_no_slurm"]

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=2
JobRequeue=0
SchedulerParameters=requeue_setup_env_fail,batch_sched_delay=0,sched_interval=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def why_no_slurm() -> str:
    """Return why there can be no Slurm here; empty if there can."""
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]
    if missing:
        return f"NOTICE: no {', '.join(missing)} (slurm-wlm and munge of Debian)"
    return "" if os.getuid() == 0 else "NOTICE: only root can start a Slurm"


class SlurmServer:
    """Runs until `close`; `environment` is for the programs that use it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pp-slurm-", dir="/tmp"))
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.config = self.folder / "slurm.conf"
        host, ports = socket.gethostname().partition(".")[0], free_ports(2)
        self.config.write_text(
            CONFIG.format(host=host, folder=self.folder, cpus=os.cpu_count(), ctld=ports[0], slurmd=ports[1])
        )
        self.environment = {**os.environ, "SLURM_CONF": str(self.config), "PATH": _PATH}
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(128))
        (self.folder / "munge.key").chmod(0o600)
        munge = [
            f"--{name}={self.folder}/munge.{name.partition('-')[0]}" for name in ("key-file", "pid-file")
        ]
        munge += [f"--socket={self.folder}/munge.socket", f"--seed-file={self.folder}/munge.seed"]
        self._processes = [self._start("munged", "--foreground", "--force", *munge)]
        self.until((self.folder / "munge.socket").exists)
        self._processes.append(self._start("slurmctld", "-D", "-i"))
        self._processes.append(self._start("slurmd", "-D", "-N", host))
        self.until(lambda: "State=IDLE" in self.ask("scontrol", "show", "node"))

    def ask(self, *command: str) -> str:
        """Run a program of Slurm and return what it prints, errors included."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def job(self) -> str:
        """Return what Slurm says about its first job."""
        return self.ask("scontrol", "show", "job", "1")

    def close(self) -> None:
        """End all jobs and the daemons, and remove their folder."""
        self.ask("scancel", "--user=root", "--signal=KILL", "--full")
        self.ask("scancel", "--user=root")
        self.until(lambda: not self.ask("squeue", "--noheader").strip())
        for process in reversed(self._processes):
            process.terminate()
            process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{command[0]}.out").open("wb") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for what programs of Slurm do, for which there is no event."""
        deadline = time.monotonic() + 120
        while not condition():
            if time.monotonic() > deadline:
                logs = [path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.out")]
                raise TimeoutError("\n".join([*logs, self.ask("scontrol", "show", "node"), self.job()]))
            time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    servers = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports
