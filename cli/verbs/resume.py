"""`pitchpipe resume`: continue an experiment that was stopped, failed, lost its manager, or gets new limits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...protocol import EXPECTED_GAIN, NO_GAIN
from ...store.reading import ExperimentView
from ..failures import FAILED, Failure
from ..interrupts import Interrupts
from ..lookup import chosen_experiment, chosen_name, experiments_directory
from ..outcome import command_for
from ..verb import experiment_options, limit_options, verb, watch_options

if TYPE_CHECKING:
    from ...manager.control import Extension
    from ...store import ExperimentFolder


@verb(
    "resume",
    "pitchpipe resume k3x9a2bq",
    "pitchpipe resume k3x9a2bq --detach",
    "pitchpipe resume k3x9a2bq --max-trial-number 200",
    "pitchpipe resume k3x9a2bq --from /mnt/shared",
    "pitchpipe resume k3x9a2bq --code-directory .",
)
@experiment_options
@watch_options
@click.option("--extend", is_flag=True, help="Continue an experiment that is DONE; implied by a new limit.")
@limit_options
@click.option(
    "--from",
    "storage",
    metavar="STORAGE",
    help="First fetch the experiment from its copy in this folder or URL (the config's storage_path).",
)
@click.option(
    "--code-directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the trials' code is now, if the project was moved or renamed.",
)
@click.option("--detach", is_flag=True, help="Continue in the background, like `create`.")
# Passed by `create` and by --detach: they wait until this process writes to it.
@click.option("--announce-fd", type=int, hidden=True)
def resume(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    quiet: bool,
    extend: bool,
    storage: str | None,
    code_directory: Path | None,
    detach: bool,
    announce_fd: int | None,
    **limits: Any,
) -> int:
    """Resume an experiment that was stopped, failed, or lost its manager.

    Nothing is computed twice: results are kept, and trials that kept running without a manager are adopted. ID
    is an experiment's id or its beginning.  [default: the newest]
    """
    if announce_fd is not None:
        os.set_inheritable(announce_fd, False)
    with Interrupts() as interrupts:
        from ...manager import code_notes, experiment_config, resume_experiment
        from ...manager.control import Extension
        from .create import run_in_background
        from .run import watched

        if storage is not None:
            folder = _fetch(storage, chosen_name(experiment, experiment_id), directory)
        else:
            folder = chosen_experiment(experiment, experiment_id, directory)
        try:
            _prepare(folder, extend, Extension(**limits), code_directory)
        except BaseException:
            if storage is not None:  # the corrected command fetches it again
                shutil.rmtree(folder.path, ignore_errors=True)
            raise
        interrupts.hold()
        if detach:
            for note in () if quiet or as_json else code_notes(folder, experiment_config(folder)):
                click.echo(note)
            folder.own()
            folder.disown()
            return run_in_background(folder, interrupts, as_json=as_json, quiet=quiet)
        return watched(
            resume_experiment(folder), interrupts, as_json=as_json, quiet=quiet, announce_fd=announce_fd
        )


def _fetch(storage: str, name: str | None, directory: Path | None) -> ExperimentFolder:
    from ...store import fetch_experiment

    if name is None:
        raise Failure("--from needs the ID of the experiment")
    return fetch_experiment(storage, name, experiments_directory(directory))


def _prepare(
    folder: ExperimentFolder, extend: bool, extension: Extension, code_directory: Path | None
) -> None:
    """Refuse an experiment that cannot continue; store new limits and the new place of its code."""
    from ...manager import experiment_config, faults_at_start
    from ...manager.control import (
        ExtensionError,
        extend_experiment,
        options_to_extend,
        owned_store,
        with_code_in,
    )

    with ExperimentView(folder) as view:
        summary, config = view.summary(), view.config()
    changed = experiment_config(folder)
    folder.refuse_search(config)
    status, again = summary.status, command_for(folder, "resume", options_to_extend(folder))
    if status == "DONE" and not extend and not extension.changes():
        hint = f"; to extend it: {again}"
        if config.get("stopWhen") and summary.reason.startswith((EXPECTED_GAIN, NO_GAIN)):
            hint = f"; stop_when would end it again: start another with warm_start: [{folder.experiment_id}]"
        raise Failure(f"experiment {folder.experiment_id} is DONE: there is nothing to continue{hint}")
    if extend and not extension.changes():
        raise Failure(f"--extend needs a new limit, such as: {again}")
    if code_directory is not None:
        changed = with_code_in(changed, code_directory.absolute())
    if faults := faults_at_start(changed):
        why = "; ".join(fault.message for fault in faults)
        cure = "put that right, then resume it"
        if not changed.trial_code_directory.is_dir():
            cure = f"if the project was moved: {command_for(folder, 'resume', '--code-directory DIR')}"
        raise Failure(f"experiment {folder.experiment_id} cannot continue here: {why}; {cure}", FAILED)
    if code_directory is not None:
        with owned_store(folder) as store:
            store.set_config(changed.canonical())
    if extension.changes():
        try:
            extend_experiment(folder, extension)
        except ExtensionError as error:
            raise Failure(str(error)) from error
