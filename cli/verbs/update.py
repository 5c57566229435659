"""`pitchpipe update`: change the limits of an experiment, or its search space."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...protocol import JsonObject
from ...store.reading import ExperimentView, Summary
from ...telling import length_text
from ..failures import Failure
from ..lookup import chosen_experiment
from ..outcome import can_resume, command_for, continue_line
from ..verb import FILE, experiment_options, json_option, limit_options, say, verb

if TYPE_CHECKING:
    from ...manager.control import CurrentLimits
    from ...store import ExperimentFolder


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
# Passed by NNI's commands and its `Experiment`: there a higher limit continues an experiment that is DONE.
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
        return _resume(folder, as_json=as_json)
    text = _limits_text(folder, limits_now) + ("" if search_space is None else ", in the new search space")
    say(as_json, {"id": folder.experiment_id, "limits": limits_now}, text, *_next_lines(folder, summary))
    return 0


def _summary(folder: ExperimentFolder) -> Summary:
    with ExperimentView(folder) as view:
        return view.summary()


def _is_done(folder: ExperimentFolder) -> bool:
    """Return whether an experiment is DONE, once the manager that ended it is gone."""
    return _summary(folder).status == "DONE" and folder.wait_until_unmanaged(math.inf)


def _resume(folder: ExperimentFolder, *, as_json: bool) -> int:
    """Continue an experiment that is DONE, in the background, as NNI's manager does when a limit is raised."""
    from .resume import resume

    context = click.get_current_context()
    return context.invoke(resume, experiment=str(folder.path), detach=True, as_json=as_json)


def _search_space(path: Path) -> Any:
    from ...config import read_source

    if path.is_dir() or not path.exists():  # a pipe can be read
        raise Failure(f"{path} is not a file" if path.exists() else f"there is no file {path}")
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
