"""`pitchpipe import`: results measured elsewhere, for the tuner to learn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ...protocol import foreign
from ...store import absolute
from ...store.reading import ExperimentView
from ..failures import Failure
from ..lookup import chosen_experiment, experiments_directory
from ..outcome import command_for
from ..verb import FILE, experiment_options, json_option, say, verb

_MOST_LINES = 5
_FORM = '[{"parameter": {"lr": 0.1}, "value": 0.9}, ...]'


@verb(
    "import",
    "pitchpipe import --file results.json",
    "pitchpipe import k3x9a2bq --file trials.json",
    "pitchpipe import ~/nni-experiments/nUx2cFby",
)
@experiment_options
@click.option(
    "--file",
    "-f",
    "path",
    type=FILE,
    metavar="FILE",
    help="A JSON list, or the JSON export of another experiment, also of NNI.",
)
@json_option
def import_verb(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    path: Path | None,
    as_json: bool,
) -> None:
    """Import results measured elsewhere into the tuner of a running experiment, or an experiment of NNI.

    FILE contains [{"parameter": {"lr": 0.1}, "value": 0.9}, ...], with several metrics or limits
    "value": {"acc": 0.9, "ms": 12}, or the JSON of `pitchpipe export`, whose successful trials are used. The whole
    file is checked first, and results outside the search space are left out. The results do not become trials of the
    experiment, and `resume` keeps them.

    Without FILE, ID is the folder of an experiment of NNI, which becomes an experiment to look at.
    """
    from ...manager.control import import_results

    if path is None:
        _import_experiment(experiment, experiment_id, directory, as_json)
        return
    results = list(_results(path))
    folder = chosen_experiment(experiment, experiment_id, directory)
    count, left_out = import_results(folder, results)
    what = f"{count} of {len(results)} results" if left_out else f"{count} result{'s' * (count != 1)}"
    lines = [f"left out: {why}" for why in left_out[:_MOST_LINES]]
    if len(left_out) > _MOST_LINES:
        lines.append(f"left out: {len(left_out) - _MOST_LINES} more")
    say(
        as_json,
        {"id": folder.experiment_id, "imported": count, "left_out": left_out},
        f"imported {what} into experiment {folder.experiment_id}",
        *lines,
    )


def _import_experiment(
    path: str | None, experiment_id: str | None, directory: Path | None, as_json: bool
) -> None:
    """Import an experiment of NNI."""
    (importing,) = foreign("import")
    if path is None:
        raise Failure("what should be imported? --file FILE, or the folder of an experiment of NNI")
    source = absolute(path)
    if source.is_file():
        raise Failure(
            f"{path} is a file: results are imported with --file, experiments of NNI by their folder"
        )
    folder = importing.import_experiment(source, experiments_directory(directory), experiment_id)
    with ExperimentView(folder) as view:
        summary = view.summary()
    trials, (source_text, *left_out) = summary.trials, summary.reason.split("; left out: ")
    lines = (
        f"imported experiment {folder.experiment_id} with {trials} trials",
        *source_text.split("; ")[1:],
        *(f"left out: {what}" for what in left_out),
        f"to look at it: {command_for(folder, 'ui')}",
        f"to continue its search: warm_start: [{folder.path}] in a config",
    )
    say(
        as_json,
        {"id": folder.experiment_id, "folder": str(folder.path), "trials": trials, "left_out": left_out},
        *lines,
    )


def _results(path: Path) -> Iterator[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise Failure(f"there is no file {path}") from None
    except (ValueError, RecursionError) as error:
        raise Failure(f"{path} is not JSON ({error}): it must contain {_FORM}") from error
    if isinstance(content, dict) and isinstance(content.get("trials"), list):
        for number, trial in enumerate(content["trials"]):
            if not isinstance(trial, dict):
                raise Failure(
                    f"trials[{number}] in {path} is not an object, as in the JSON of pitchpipe export"
                )
            if trial.get("status") == "SUCCEEDED" and trial.get("final") is not None:
                if not isinstance(trial.get("parameters"), dict):
                    raise Failure(f"trials[{number}] in {path} has no object of parameters")
                yield {"parameter": trial["parameters"], "value": trial["final"]}
        return
    if not isinstance(content, list):
        raise Failure(f"{path} must contain {_FORM}, or the JSON of pitchpipe export")
    yield from map(_plain, content)


def _plain(row: Any) -> Any:
    """Return a result of NNI's export without its other fields, and with its value parsed; others as they are."""
    if not isinstance(row, dict) or not isinstance(row.get("value"), str) or "trialJobId" not in row:
        return row
    try:
        return {"parameter": row["parameter"], "value": json.loads(row["value"])}
    except (ValueError, KeyError):
        return row
