"""`pitchpipe report`: an experiment as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from ..failures import FAILED, Failure
from ..lookup import chosen_experiment
from ..verb import FILE, experiment_options, json_option, say, verb

__all__ = ["report"]


@verb("report", "pitchpipe report", "pitchpipe report k3x9a2bq -o report.html")
@experiment_options
@click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    help="The output file.  [default: report-ID.html in the current folder]",
)
@json_option
def report(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write an experiment as one HTML file that opens in any browser, offline.

    It contains the summary, the best parameters, the figures, the failures, the trials, the settings and how to
    reproduce the experiment: about 2 MB, most of it the library that draws the figures. The experiment may still be
    running. Values whose names look like a password or a key are hidden.
    """
    from ...server.report import write_report

    folder = chosen_experiment(experiment, experiment_id, directory)
    path = output or Path(f"report-{folder.experiment_id}.html")
    try:
        size = write_report(folder.path, path)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", FAILED) from error
    found = {"id": folder.experiment_id, "file": str(path.absolute()), "bytes": size}
    say(as_json, found, f"{path} ({size / 1e6:.1f} MB)")
