"""`pitchpipe import`: results measured elsewhere, for the tuner to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ..failures import Failure
from ..finding import chosen_experiment
from ..verb import FILE, experiment_options, verb

__all__ = ["import_verb"]

_FORM = '[{"parameter": {"lr": 0.1}, "value": 0.9}, ...]'


@verb("import", "pitchpipe import --file results.json", "pitchpipe import k3x9a2bq --file trials.json")
@experiment_options
@click.option(
    "--file",
    "-f",
    "path",
    required=True,
    type=FILE,
    metavar="FILE",
    help="A JSON list, or the JSON export of another experiment.",
)
def import_verb(
    experiment: str | None, experiment_id: str | None, directory: Path | None, path: Path
) -> None:
    """Import results measured elsewhere into the tuner of a running experiment.

    FILE contains [{"parameter": {"lr": 0.1}, "value": 0.9}, ...], or the JSON of `pitchpipe export`, whose
    successful trials are used. The whole file is checked first. The results do not become trials of the
    experiment, and `resume` keeps them.
    """
    from ...manager.control import import_results

    results = list(_results(path))
    folder = chosen_experiment(experiment, experiment_id, directory)
    count = import_results(folder, results)
    click.echo(f"imported {count} results into experiment {folder.experiment_id}")


def _results(path: Path) -> Iterator[Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Failure(f"there is no file {path}") from None
    except ValueError as error:
        raise Failure(f"{path} is not JSON ({error}): it must contain {_FORM}") from error
    if isinstance(found, dict) and isinstance(found.get("trials"), list):
        for trial in found["trials"]:
            if trial.get("status") == "SUCCEEDED" and trial.get("final") is not None:
                yield {"parameter": trial["parameters"], "value": trial["final"]}
        return
    if not isinstance(found, list):
        raise Failure(f"{path} must contain {_FORM}, or the JSON of pitchpipe export")
    yield from found
