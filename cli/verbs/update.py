"""`pitchpipe update`: new limits or another search space for an experiment."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from ...runner import ExperimentStatus
from ...store import ExperimentFolder
from ...store.reading import ExperimentView, length_text
from ..failures import Failure
from ..lookup import chosen_experiment
from ..outcome import can_resume, command_for, continue_line
from ..verb import FILE, experiment_options, json_option, limit_options, say, verb

__all__ = ["update"]


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

    changes = Extension(**limits).changes()
    if search_space is not None:
        changes["search_space"] = _read(search_space)
    if not changes:
        raise Failure("nothing to change: give an option such as --trial-concurrency 8")
    folder = chosen_experiment(experiment, experiment_id, directory)
    try:
        found = change_experiment(folder, changes)
    except ControlError:
        if not (continues and _is_done(folder)):
            raise
        found = change_experiment(folder, changes)  # its manager was about to end
    if continues and _reason(folder) == EXTENDED:
        return _resumed(folder, as_json=as_json)
    text = _limits_text(folder, found) + ("" if search_space is None else ", in the new search space")
    say(as_json, {"id": folder.experiment_id, "limits": found}, text, *_next_lines(folder))
    return 0


def _is_done(folder: ExperimentFolder) -> bool:
    """Return whether an experiment is DONE, once the manager that ended it is gone."""
    with ExperimentView(folder) as view:
        is_done = view.experiment().status == ExperimentStatus.DONE
    return is_done and folder.wait_until_unmanaged(math.inf)


def _reason(folder: ExperimentFolder) -> str:
    with ExperimentView(folder) as view:
        return view.summary().reason


def _resumed(folder: ExperimentFolder, *, as_json: bool) -> int:
    """Continue an experiment that is DONE, in the background, as NNI's manager does when a limit is raised."""
    from .resume import resume

    context = click.get_current_context()
    return context.invoke(resume, experiment=str(folder.path), detach=True, as_json=as_json)


def _read(path: Path) -> Any:
    from ...config import read_source

    if not path.is_file():
        raise Failure(f"there is no file {path}")
    return read_source(path).data


def _next_lines(folder: ExperimentFolder) -> list[str]:
    """Say how to continue an experiment that does not run."""
    from ...manager.control import options_to_extend

    with ExperimentView(folder) as view:
        summary = view.summary()
    if summary.status == ExperimentStatus.DONE and not summary.is_search:
        return [f"it is DONE; to extend it: {command_for(folder, 'resume', options_to_extend(folder))}"]
    return [continue_line(folder, summary)] if can_resume(folder, summary) else []


def _limits_text(folder: ExperimentFolder, limits: dict[str, Any]) -> str:
    duration = limits.get("max_experiment_duration")
    number = limits.get("max_trial_number")
    bounds = [f"{limits['trial_concurrency']} at a time"]
    bounds.append("any number of trials" if number is None else f"at most {number} trials")
    if duration is not None:
        bounds.append(f"at most {length_text(duration)}")
    return f"experiment {folder.experiment_id}: {', '.join(bounds)}"
