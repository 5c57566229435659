"""`pitchpipe slurm`: an experiment as a job of Slurm."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...store import absolute
from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..verb import json_option, new_experiment_options, say, verb

if TYPE_CHECKING:
    from ...config import ExperimentConfig

_OPTION = re.compile(r"[a-z][a-z0-9-]+(=.+)?")


class _SlurmGroup(LazyGroup):
    table = {  # noqa: RUF012
        "submit": ("slurm:submit", "Submit an experiment as a batch job."),
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
