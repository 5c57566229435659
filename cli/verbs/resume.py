"""`pitchpipe resume` and `update`: continue an experiment, and change its limits or its search space."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...protocol import EXPECTED_GAIN, NO_GAIN, JsonObject
from ...store.reading import ExperimentView, Summary
from ...telling import length_text
from ..failures import FAILED, Failure
from ..interrupts import Interrupts
from ..lookup import chosen_experiment, chosen_name, experiments_directory
from ..outcome import can_resume, command_for, continue_line
from ..verb import FILE, experiment_options, json_option, limit_options, say, verb, watch_options

if TYPE_CHECKING:
    from ...manager.control import CurrentLimits, Extension
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
        from ...manager import resume_experiment
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


@verb(
    "update",
    "pitchpipe update --trial-concurrency 8",
    "pitchpipe update k3x9a2bq --max-trial-number 200 --max-experiment-duration 3h",
    "pitchpipe update k3x9a2bq --search-space wider.yml",
)
@experiment_options
@limit_options
@click.option(
    "--search-space", type=FILE, metavar="FILE", help="A search space (JSON or YAML) for new trials."
)
@json_option
@click.option("--continue", "continues", is_flag=True, hidden=True)
def update(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    search_space: Path | None,
    as_json: bool,
    continues: bool,
    **limits: Any,
) -> int:
    """Change the limits of an experiment, or its search space while it runs.

    The changes take effect at once and are stored, so `resume` uses them. Lowering the concurrency does not stop
    running trials. If the experiment is not running, they take effect when you resume it.
    """
    from ...manager.control import EXTENDED, ControlError, Extension, change_experiment

    changes: JsonObject = {**Extension(**limits).changes()}
    if search_space is not None:
        changes["search_space"] = _search_space(search_space)
    if not changes:
        raise Failure("nothing to change: give an option such as --trial-concurrency 8")
    folder = chosen_experiment(experiment, experiment_id, directory)
    try:
        limits_now = change_experiment(folder, changes)
    except ControlError:
        if not (continues and _is_done(folder)):
            raise
        limits_now = change_experiment(folder, changes)  # its manager was about to end
    summary = _summary(folder)
    if continues and summary.reason == EXTENDED:
        return _resumed(folder, as_json=as_json)
    text = _limits_text(folder, limits_now) + ("" if search_space is None else ", in the new search space")
    say(as_json, {"id": folder.experiment_id, "limits": limits_now}, text, *_next_lines(folder, summary))
    return 0


def _summary(folder: ExperimentFolder) -> Summary:
    with ExperimentView(folder) as view:
        return view.summary()


def _is_done(folder: ExperimentFolder) -> bool:
    """Return whether an experiment is DONE, once the manager that ended it is gone."""
    return _summary(folder).status == "DONE" and folder.wait_until_unmanaged(math.inf)


def _resumed(folder: ExperimentFolder, *, as_json: bool) -> int:
    """Continue an experiment that is DONE, in the background, as NNI's manager does when a limit is raised."""
    context = click.get_current_context()
    return context.invoke(resume, experiment=str(folder.path), detach=True, as_json=as_json)


def _search_space(path: Path) -> Any:
    from ...config import read_source

    if not path.is_file():
        raise Failure(f"there is no file {path}")
    return read_source(path).data


def _next_lines(folder: ExperimentFolder, summary: Summary) -> list[str]:
    """Return how to continue an experiment that does not run."""
    from ...manager.control import options_to_extend

    if summary.status == "DONE" and not summary.is_search:
        return [f"it is DONE; to extend it: {command_for(folder, 'resume', options_to_extend(folder))}"]
    return [continue_line(folder, summary)] if can_resume(folder, summary) else []


def _limits_text(folder: ExperimentFolder, limits: CurrentLimits) -> str:
    duration, number = limits["max_experiment_duration"], limits["max_trial_number"]
    bounds = [f"{limits['trial_concurrency']} at a time"]
    bounds.append("any number of trials" if number is None else f"at most {number} trials")
    if duration is not None:
        bounds.append(f"at most {length_text(duration)}")
    return f"experiment {folder.experiment_id}: {', '.join(bounds)}"
