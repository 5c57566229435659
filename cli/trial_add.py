"""`pitchpipe trial add`: a trial with parameters of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .failures import USAGE, Failure
from .verb import experiment_options, verb

__all__ = ["add"]


@verb(
    "add",
    "pitchpipe trial add --parameters '{\"lr\": 0.1}'",
    "pitchpipe trial add k3x9a2bq --like 17",
)
@experiment_options
@click.option("--parameters", "text", metavar="JSON", help="The parameters, as a JSON object.")
@click.option("--like", metavar="TRIAL", help="The parameters of another trial: its id or number.")
def add(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    text: str | None,
    like: str | None,
) -> None:
    """Run a trial with your own parameters, or once more with those of another trial.

    The experiment must run. The trial counts like any other, also against max_trial_number.
    """
    from ..manager.steering import add_trial, rerun_trial
    from .finding import chosen_experiment

    parameters = None if text is None else _read(text)
    folder = chosen_experiment(experiment, experiment_id, directory)
    if parameters is not None and like is None:
        made = add_trial(folder, parameters)
    elif like is not None and parameters is None:
        made = rerun_trial(folder, int(like) if like.isdecimal() else like)
    else:
        raise Failure("give --parameters or --like, and not both", USAGE)
    click.echo(f"trial {made['sequence_id']} ({made['trial_id']}) of experiment {folder.experiment_id}")


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Failure(f"--parameters is not JSON: {error}", USAGE) from error
    if not isinstance(found, dict):
        raise Failure('--parameters must be an object, such as {"lr": 0.1}', USAGE)
    return found
