"""`pitchpipe cluster` and `slurm`: Ray on several machines, by ssh or as a job of Slurm."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...store import absolute
from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..verb import WholeNumber, json_option, new_experiment_options, say, verb

if TYPE_CHECKING:
    from ...config import ExperimentConfig

_NONE = "no cluster was started here"
_OPTION = re.compile(r"[a-z][a-z0-9-]+(=.+)?")


class _ClusterGroup(LazyGroup):
    table = {  # noqa: RUF012
        "up": ("cluster:up", "Start Ray on several machines."),
        "status": ("cluster:status", "Show on which of them it runs."),
        "down": ("cluster:down", "End it on all of them."),
    }


@click.group("cluster", cls=_ClusterGroup)
def cluster() -> None:
    """Start Ray on several machines by ssh, show or end it.

    The machines need the same versions of Python, Ray and Pitchpipe as this one, and ssh must log in without a
    password. The first machine is the head: the others and this one connect to it.

    \b
    Example:
      pitchpipe cluster up --hosts node1,node2,node3
    """


@verb(
    "up",
    "pitchpipe cluster up --hosts node1,node2,node3",
    "pitchpipe cluster up --hosts ada@10.0.0.1,ada@10.0.0.2 --python /opt/tuning/bin/python",
)
@click.option(
    "--hosts", required=True, metavar="A,B,...", help="The machines, as ssh knows them; the head first."
)
@click.option(
    "--port", type=WholeNumber(1, 65535), default=6379, show_default=True, help="The port of the head."
)
@click.option("--python", metavar="PATH", help="Python with Pitchpipe there.  [default: this path]")
@click.option(
    "--ssh", default="ssh", show_default=True, metavar="COMMAND", help="The ssh command, with its options."
)
@json_option
def up(hosts: str, port: int, python: str | None, ssh: str, as_json: bool) -> None:
    """Start Ray on several machines, and print what experiment.yml needs to run trials there.

    If one machine cannot be used, nothing is left running on the others. Only processes with the token of the
    cluster can use it; experiments that are started here as this user find the token themselves.
    """
    from ...executors.clusters import ClusterError, cluster_up

    names = [name.strip() for name in hosts.split(",") if name.strip()]
    if not names or len(set(names)) < len(names) or any(name.startswith("-") for name in names):
        raise Failure(f"--hosts: name each machine once, separated by commas, not {hosts!r}")
    try:
        started = cluster_up(names, port=port, python=python or sys.executable, ssh=shlex.split(ssh))
    except ClusterError as error:
        raise Failure(str(error), FAILED) from error
    lines = (
        f"Ray runs on {', '.join(started.hosts)}. Write into experiment.yml:",
        "",
        "training_service:",
        "  platform: ray",
        f"  address: {started.address}",
    )
    say(as_json, {"address": started.address, "hosts": started.hosts}, *lines)


@verb("status", "pitchpipe cluster status", "pitchpipe cluster status --json")
@json_option
def status(as_json: bool) -> None:
    """Show on which machines the cluster runs that `cluster up` started."""
    from ...executors.clusters import Cluster, cluster_status

    current = Cluster.current()
    if current is None:
        say(as_json, {"address": None, "hosts": [], "states": {}}, _NONE)
        return
    states = cluster_status(current)
    lines = (f"  {host}  {state}" for host, state in states.items())
    shown = {"address": current.address, "hosts": list(states), "states": states}
    say(as_json, shown, f"a Ray cluster at {current.address}", *lines)


@verb("down", "pitchpipe cluster down")
@json_option
def down(as_json: bool) -> None:
    """End the cluster that `cluster up` started, and everything that runs in it."""
    from ...executors.clusters import Cluster, cluster_down

    current = Cluster.current()
    if current is None:
        say(as_json, {"address": None, "hosts": []}, _NONE)
        return
    if failed := cluster_down(current):
        what = "\n".join(f"{host}: {why}" for host, why in failed.items())
        raise Failure(f"{what}\nit may still run there: repeat `pitchpipe cluster down`", FAILED)
    line = f"the cluster at {current.address} has ended on {', '.join(current.hosts)}"
    say(as_json, {"address": current.address, "hosts": current.hosts}, line)


class _SlurmGroup(LazyGroup):
    table = {  # noqa: RUF012
        "submit": ("cluster:submit", "Submit an experiment as a batch job."),
    }


@click.group("slurm", cls=_SlurmGroup)
def slurm() -> None:
    """Run experiments as jobs of Slurm.

    \b
    Example:
      pitchpipe slurm submit experiment.yml --nodes 4
    """


@verb(
    "submit",
    "pitchpipe slurm submit experiment.yml --nodes 4",
    "pitchpipe slurm submit experiment.yml --nodes 2 -o time=8:00:00 -o gpus-per-node=4",
    "pitchpipe slurm submit experiment.yml --nodes 4 --print",
)
@new_experiment_options
@click.option(
    "--nodes", type=click.IntRange(1), default=1, show_default=True, help="How many nodes the job gets."
)
@click.option(
    "--option",
    "-o",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of sbatch, without its dashes.",
)
@click.option("--print", "is_printed", is_flag=True, help="Print the script, and submit nothing.")
@json_option
def submit(
    config: Path,
    overrides: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    nodes: int,
    options: tuple[str, ...],
    is_printed: bool,
    as_json: bool,
) -> None:
    """Submit a job that starts Ray on all its nodes and runs the experiment there.

    When Slurm preempts the job, or two minutes before its time is over, the job is requeued, and its next run
    resumes the experiment: results are kept, and trials continue from their last checkpoints. CONFIG is checked
    first; it needs `training_service: {platform: ray, address: auto}`. The directory of the experiments must be on
    a disk that all nodes share.
    """
    from ...executors.clusters import SlurmError, SlurmJob, batch_script
    from ...executors.clusters import submit as submitted
    from ...manager import directory_of
    from ...store import new_experiment_id
    from ..new_experiment import checked_config

    checked = checked_config(config, overrides)
    if getattr(checked.training_service, "address", None) != "auto":
        raise Failure("the job starts its own Ray: write training_service: {platform: ray, address: auto}")
    job = SlurmJob(
        experiment_id=experiment_id or new_experiment_id(),
        config=absolute(config),
        directory=absolute(directory or directory_of(checked)),
        nodes=nodes,
        options=[_option(option) for option in options],
        overrides=overrides,
    )
    if is_printed:
        script = batch_script(job)
        say(as_json, {"id": job.experiment_id, "job": None, "script": script}, *script.splitlines())
        return
    try:
        number, warning = submitted(job)
    except SlurmError as error:
        raise Failure(str(error), FAILED) from error
    line = f"job {number} runs experiment {job.experiment_id} and writes to {job.log}"
    say(as_json, {"id": job.experiment_id, "job": number, "log": str(job.log)}, line)
    for note in filter(None, [warning, _note(checked)]):
        click.echo(f"note: {note}", err=True)


def _option(text: str) -> str:
    """Return an option of `sbatch` without dashes; raise `Failure` if it is not one."""
    option = text.lstrip("-")
    if not _OPTION.fullmatch(option):
        raise Failure(f"-o {text}: write it as NAME=VALUE, such as -o time=8:00:00, with the long name")
    return option


def _note(config: ExperimentConfig) -> str:
    """Return advice for jobs that are requeued often; empty if none is needed."""
    limit = config.max_failures
    allowed = limit if isinstance(limit, int) else limit.get("INFRA", 3)
    if allowed < 0:
        return ""
    what = f"a trial that is cut off more than {allowed} times fails"
    return f"{what}; for jobs that are often requeued, set max_failures: {{INFRA: -1}}"
