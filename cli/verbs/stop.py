"""`pitchpipe stop` and `delete`: end experiments, and remove those that have ended."""

from __future__ import annotations

import shutil
import sys
from contextlib import closing, suppress
from pathlib import Path

import click
import psutil

from ...protocol import counted
from ...runner import ExperimentStatus
from ...store import ExperimentFolder, ManagerInfo, Store, StoreError
from ...store.reading import ExperimentView, TrialQuery
from ...telling import experiment_text
from ..failures import FAILED, Failure
from ..interrupts import Interrupts
from ..lookup import chosen_experiment, chosen_name, experiments_directory
from ..outcome import StateObject, command_for, state_object
from ..verb import (
    complete_experiment,
    directory_option,
    experiment_options,
    json_option,
    say,
    say_lines,
    verb,
)

# In addition to the grace period: the manager itself kills trials long before this is over.
_PATIENCE = 20.0


@verb("stop", "pitchpipe stop", "pitchpipe stop k3x9a2bq", "pitchpipe stop --all")
@experiment_options
@click.option("--all", "every", is_flag=True, help="Stop all experiments, or all of --dir.")
@json_option
def stop(
    experiment: str | None, experiment_id: str | None, directory: Path | None, every: bool, as_json: bool
) -> None:
    """Stop an experiment and wait for its end. Results are kept, and `resume` can continue it.

    If its manager was killed, the trials it left running are stopped. 'abc*' means all running experiments whose id
    begins with abc.
    """
    name = chosen_name(experiment, experiment_id) or ""
    if every and name:
        raise Failure("give an ID or --all, not both")
    if not (every or name.endswith("*")):
        say(as_json, *_stop(chosen_experiment(experiment, experiment_id, directory)))
        return
    directory = experiments_directory(directory)
    named = [
        one for one in ExperimentFolder.all(directory) if one.experiment_id.startswith(name.removesuffix("*"))
    ]
    stoppable = [folder for folder in named if _may_be_stopped(folder)]
    if name and not stoppable:
        raise Failure(f"no experiment '{name}' is running in {directory}")
    stopped = []
    for folder in stoppable:
        state, line = _stop(folder)
        stopped.append(state)
        if not as_json:
            say_lines([line])
    if as_json or not stoppable:
        say(as_json, {"stopped": stopped}, f"no experiment is running in {directory}")


def _may_be_stopped(folder: ExperimentFolder) -> bool:
    """Return whether an experiment has not ended; name one that cannot be read and has no manager."""
    try:
        return not _is_over(folder)
    except StoreError as error:
        click.echo(f"experiment {folder.experiment_id} is left as it is: {error}", err=True)
        return False


def _is_over(folder: ExperimentFolder) -> bool:
    if folder.manager() is not None:
        return False
    with ExperimentView(folder) as view:
        return ExperimentStatus(view.experiment().status).is_final


def _stop(folder: ExperimentFolder) -> tuple[StateObject, str]:
    """Stop an experiment; return its state as an object for scripts and as a line."""
    manager = folder.manager()
    was_over = manager is None and _is_over(folder)
    if manager is not None:
        _end_running(folder, manager)
    elif not was_over:
        _end_abandoned(folder)
    try:
        with ExperimentView(folder) as view:
            summary = view.summary()
    except StoreError as error:
        raise Failure(f"experiment {folder.experiment_id} no longer runs, but {error}", FAILED) from error
    state = state_object(summary)
    kept = f"{summary.trials} trials are kept in {folder.path}"
    if was_over:
        return state, f"experiment {summary.id} is not running"
    return state, f"experiment {summary.id} is {experiment_text(summary.status)}, {kept}"


def _end_running(folder: ExperimentFolder, manager: ManagerInfo) -> None:
    from ...manager.control import ControlError, ask_manager

    patience = _grace_of(folder) + _PATIENCE
    by = f"process {manager.pid} on {manager.host}"
    _wake(manager)
    try:
        ask_manager(folder.path, {"op": "stop"})
    except ControlError:
        if (process := manager.process) is None:
            where = f"experiment {folder.experiment_id} is run by {by}"
            raise Failure(f"{where}, which does not answer here: stop it there", FAILED) from None
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            process.terminate()
    if not folder.wait_until_unmanaged(patience):
        end = f"end it there: kill -9 {manager.pid}" if manager.process is None else f"kill -9 {manager.pid}"
        raise Failure(f"{by} is still running after {patience:g} s: {end}", FAILED)


def _wake(manager: ManagerInfo) -> None:
    """Have a manager that is suspended, as by Ctrl-Z, continue: only then can it end its trials."""
    process = manager.process
    with suppress(psutil.Error):
        if process is not None and process.status() == psutil.STATUS_STOPPED:
            click.echo(f"process {manager.pid} was suspended: it continues, to end the experiment", err=True)
            process.resume()


def _grace_of(folder: ExperimentFolder) -> float:
    """Return how long the trials may take to end; 0 if it cannot be read, since their manager must end anyway."""
    try:
        with ExperimentView(folder) as view:
            return float(view.config().get("killGrace") or 0.0)
    except StoreError:
        return 0.0


def _end_abandoned(folder: ExperimentFolder) -> None:
    """Own the experiment until its trials are stopped and their reports collected."""
    from ...manager import resume_experiment
    from ..display import SilentDisplay
    from ..foreground import RunningExperiment

    with Interrupts() as interrupts:
        interrupts.hold()
        manager = resume_experiment(folder, ending=True)
        running = RunningExperiment(manager, SilentDisplay(sys.stderr), interrupts)
        running.run()
    if running.error and running.has_executor:
        where = folder.path / "logs" / "manager.log"
        raise Failure(
            f"experiment {folder.experiment_id} was not stopped properly: {running.error} ({where})", FAILED
        )
    if running.error:
        # The place where the trials ran cannot be reached: their reports are lost.
        with closing(Store.open(folder.database)) as store:
            store.set_status(ExperimentStatus.STOPPED.value, f"stopped by the user; {running.error}")


@verb("delete", "pitchpipe delete k3x9a2bq", "pitchpipe delete k3x9a2bq nightly --yes")
@click.argument("experiments", nargs=-1, required=True, metavar="ID...", shell_complete=complete_experiment)
@directory_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete(experiments: tuple[str, ...], directory: Path | None, yes: bool, as_json: bool) -> None:
    """Delete experiments with their results, logs and checkpoints. This cannot be undone.

    An experiment that is running, or whose trials are, must be stopped first. A copy at its `storage_path` is kept.
    """
    named = [chosen_experiment(name, None, directory) for name in experiments]
    folders = list({folder.path.resolve(): folder for folder in reversed(named)}.values())[::-1]
    for folder in folders:
        _refuse_if_running(folder)
    deleted = []
    for folder in folders:
        if yes or _confirm_deletion(folder):
            _delete(folder)
            deleted.append(folder.experiment_id)
            if not as_json:
                say_lines([f"experiment {folder.experiment_id} is deleted"])
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


def _confirm_deletion(folder: ExperimentFolder) -> bool:
    """Return whether the user confirms it; raise `Failure` without a terminal."""
    if not sys.stdin.isatty():
        raise Failure(f"nothing was deleted: add --yes to delete {folder.path} without confirmation")
    return click.confirm(f"Delete {folder.path} with {_content(folder)}?", default=False)


def _content(folder: ExperimentFolder) -> str:
    try:
        with ExperimentView(folder) as view:
            trials = view.trials(TrialQuery(limit=0)).total
    except StoreError:
        return "a database that cannot be read"
    return counted(trials, "trial")


def _delete(folder: ExperimentFolder) -> None:
    """Delete an experiment; own it first, so that no other process resumes it meanwhile."""
    folder.own()
    shutil.rmtree(folder.path.resolve())
    if folder.path.is_symlink():
        folder.path.unlink()
