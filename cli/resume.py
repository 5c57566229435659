"""`pitchpipe resume`: an experiment that nobody runs goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .failures import USAGE, Failure
from .interrupts import Interrupts
from .verb import experiment_options, verb, watch_options

if TYPE_CHECKING:
    from ..manager.folder import ExperimentFolder

__all__ = ["resume"]


@verb("resume", "pitchpipe resume k3x9a2bq", "pitchpipe resume k3x9a2bq --detach")
@experiment_options
@watch_options
@click.option("--detach", is_flag=True, help="Go on in the background, as `create` does.")
@click.option("--announce-fd", type=int, hidden=True)
def resume(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    quiet: bool,
    detach: bool,
    announce_fd: int | None,
) -> int:
    """Go on with an experiment that was stopped, failed, or lost its manager.

    Nothing is computed twice: results are kept, and trials that went on without a manager are taken up. ID is
    an experiment's id or the beginning of one; without it, the newest is meant.
    """
    from ..manager.experiments import resume_experiment
    from .background import run_in_background
    from .finding import chosen_experiment
    from .run import watched

    if announce_fd is not None:
        os.set_inheritable(announce_fd, False)
    with Interrupts() as interrupts:
        folder = chosen_experiment(experiment, experiment_id, directory)
        _refuse_if_done(folder)
        interrupts.hold()
        if detach:
            folder.own()
            folder.disown()
            return run_in_background(folder, interrupts, as_json=as_json, quiet=quiet)
        return watched(
            resume_experiment(folder), interrupts, as_json=as_json, quiet=quiet, announce_fd=announce_fd
        )


def _refuse_if_done(folder: ExperimentFolder) -> None:
    from .reading import viewed

    with viewed(folder) as store:
        status = store.experiment().status
    if status in ("DONE", "VIEWED"):
        raise Failure(f"experiment {folder.experiment_id} is {status}: there is nothing to go on with", USAGE)
