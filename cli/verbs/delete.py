"""`pitchpipe delete`: experiments that are over, with all their files."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from pathlib import Path

import click

from ...runner import ExperimentStatus
from ...store import ExperimentFolder, Store, StoreError
from ...store.reading import ExperimentView, TrialQuery
from ..failures import FAILED, Failure
from ..lookup import chosen_experiment
from ..outcome import command_for
from ..verb import complete_experiment, directory_option, json_option, say, verb

__all__ = ["delete"]


@verb("delete", "pitchpipe delete k3x9a2bq", "pitchpipe delete k3x9a2bq nightly --yes")
@click.argument("experiments", nargs=-1, required=True, metavar="ID...", shell_complete=complete_experiment)
@directory_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(experiments: tuple[str, ...], directory: Path | None, yes: bool, as_json: bool) -> None:
    """Delete experiments with their results, logs and checkpoints. This cannot be undone.

    An experiment that is running, or whose trials are, must be stopped first. A copy at its `storage_path` is kept.
    """
    folders = [chosen_experiment(name, None, directory) for name in dict.fromkeys(experiments)]
    for folder in folders:
        _refuse_if_running(folder)
    deleted = [_deleted(folder, as_json) for folder in folders if yes or _is_meant(folder)]
    if as_json:
        say(as_json, {"deleted": deleted})


def _refuse_if_running(folder: ExperimentFolder) -> None:
    if (manager := folder.manager()) is not None:
        by = f"process {manager.pid} on {manager.host}"
        raise Failure(
            f"experiment {folder.experiment_id} is running in {by}: {command_for(folder, 'stop')}", FAILED
        )
    if _is_abandoned(folder):
        gone = (
            f"the manager of experiment {folder.experiment_id} is gone, and its trials may still be running"
        )
        raise Failure(f"{gone}: {command_for(folder, 'stop')}", FAILED)


def _is_abandoned(folder: ExperimentFolder) -> bool:
    """Return whether `stop` has to end the experiment first; one that `stop` cannot read can still be deleted."""
    try:
        with ExperimentView(folder) as view:
            if ExperimentStatus(view.experiment().status).is_final:
                return False
            view.check()
        with closing(Store.view(folder.database)) as store:
            store.dispatcher_record()
    except StoreError:
        return False
    return True


def _is_meant(folder: ExperimentFolder) -> bool:
    if not sys.stdin.isatty():
        raise Failure(f"nothing was deleted: add --yes to delete {folder.path} without confirmation")
    return click.confirm(f"Delete {folder.path} with {_content(folder)}?", default=False)


def _content(folder: ExperimentFolder) -> str:
    try:
        with ExperimentView(folder) as view:
            trials = view.trials(TrialQuery(limit=0)).total
    except StoreError:
        return "a database that cannot be read"
    return "1 trial" if trials == 1 else f"{trials} trials"


def _deleted(folder: ExperimentFolder, as_json: bool) -> str:
    """Delete an experiment and return its id; own it first, so that no other process resumes it meanwhile."""
    folder.own()
    shutil.rmtree(folder.path)
    if not as_json:
        say(as_json, {}, f"experiment {folder.experiment_id} is deleted")
    return folder.experiment_id
