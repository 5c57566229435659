"""`pitchpipe trial add`: a trial with the user's own parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ...store import ExperimentFolder
from ..failures import Failure
from ..lookup import chosen_experiment
from ..verb import experiment_options, json_option, say, verb

__all__ = ["add"]


@verb("add", "pitchpipe trial add --parameters '{\"lr\": 0.1}'", "pitchpipe trial add k3x9a2bq --like 17")
@experiment_options
@click.option("--parameters", "text", metavar="JSON", help="The parameters, as a JSON object.")
@click.option("--like", metavar="TRIAL", help="The parameters of another trial: its id or number.")
@json_option
@click.option("--anyway", is_flag=True, help="Accept parameters outside the search space.")
def add(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    text: str | None,
    like: str | None,
    anyway: bool,
    as_json: bool,
) -> None:
    """Run a trial with your own parameters, or with those of another trial.

    Parameters outside the search space (a misspelt or missing name, a value out of range) are refused without
    --anyway. The experiment must be running. The trial counts towards max_trial_number.
    """
    from ...manager.control import add_trial, rerun_trial

    parameters = None if text is None else _read(text)
    folder = chosen_experiment(experiment, experiment_id, directory)
    if parameters is not None and like is None:
        if not anyway:
            _refuse_strange(folder, parameters)
        made = add_trial(folder, parameters)
    elif like is not None and parameters is None:
        made = rerun_trial(folder, int(like) if like.isdecimal() else like)
    else:
        raise Failure("give either --parameters or --like")
    line = f"trial {made['sequence_id']} ({made['trial_id']}) of experiment {folder.experiment_id}"
    say(as_json, {"id": folder.experiment_id, **made}, line)


def _refuse_strange(folder: ExperimentFolder, parameters: dict[str, Any]) -> None:
    """Raise `Failure` with all reasons why the parameters are outside the search space."""
    from ...manager import experiment_config, why_outside

    if reasons := why_outside(experiment_config(folder), parameters):
        raise Failure(f"not in the search space: {reasons} (use --anyway to run it regardless)")


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Failure(f"--parameters is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failure('--parameters must be a JSON object, such as {"lr": 0.1}')
    return found
