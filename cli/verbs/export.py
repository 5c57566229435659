"""`pitchpipe export` and `report`: an experiment as a file, for other programs and for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from ...protocol import size_text
from ...store import shell_word, whole_file
from ...store.reading import ExperimentView, csv_lines, json_lines
from ..failures import FAILED, Failure
from ..lookup import chosen_experiment
from ..printing import TerminalBytes
from ..verb import FILE, experiment_options, json_option, say, verb


@verb(
    "export",
    "pitchpipe export --format json > trials.json",
    "pitchpipe export k3x9a2bq --format csv -o trials.csv",
    "pitchpipe export k3x9a2bq --format optuna -o study.db",
)
@experiment_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "optuna"]),
    help="The format.  [default: csv if FILE ends in .csv, else json]",
)
@click.option("--output", "-o", type=FILE, metavar="FILE", help="The output file.  [default: stdout]")
def export(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    form: str | None,
    output: Path | None,
) -> None:
    """Write the trials of an experiment as JSON, CSV or an Optuna study, while it runs or after.

    JSON: {"experiment": {...}, "trials": [{"id", "sequence_id", "status", "parameters", "intermediate",
    "final", "metrics", "start_time", "end_time", "reason", "kind", "exit_code", "attempts", "code"}]}; times are
    seconds since the epoch, NaN and infinities are null; metrics are what was reported last under each name.
    CSV: one row per trial with sequence_id, id, status, start_time, end_time, parameters, final, metrics, reason, code;
    nested parameters and results are flattened with dots, NaN is an empty cell.
    With repeats, trials also have family, repeat and seed, and the experiment has its families.
    Optuna: a new SQLite file with one study, named after the experiment; trials that were stopped early are pruned.
    """
    folder = chosen_experiment(experiment, experiment_id, directory)
    if form == "optuna":
        if output is None:
            raise Failure("--format optuna needs an output file: add -o study.db")
        from .optuna_study import write_study

        made = write_study(folder, output)
        click.echo(f"study {folder.experiment_id} with {made} trials: sqlite:///{output}", err=True)
        return
    lines = csv_lines if (form or _form_of(output)) == "csv" else json_lines
    with ExperimentView(folder) as view, _open_output(output) as file:
        file.writelines(lines(view))


def _form_of(output: Path | None) -> str:
    """Return the format that a file name implies; raise `Failure` for an unknown ending."""
    ending = "" if output is None else output.suffix.lower()
    if ending not in ("", ".csv", ".json"):
        raise Failure(f"unknown file ending {ending}: add --format json, csv or optuna")
    return "csv" if ending == ".csv" else "json"


@contextmanager
def _open_output(path: Path | None) -> Iterator[IO[bytes] | TerminalBytes]:
    """Open stdout, or a file."""
    if path is None or str(path) == "-":
        yield TerminalBytes(sys.stdout) if sys.stdout.isatty() else sys.stdout.buffer
        return
    try:
        with whole_file(path) as file:
            yield file
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", FAILED) from error


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
    running. Values whose names look like a password or a key are hidden. Needs the extra ui.
    """
    from ...server.report import write_report

    if output is not None and output.suffix.lower() not in ("", ".html", ".htm"):
        page = output.with_suffix(".html")
        raise Failure(
            f"a report is an HTML page: write -o {shell_word(page)}; browsers print it, also as PDF"
        )
    folder = chosen_experiment(experiment, experiment_id, directory)
    path = output or Path(f"report-{folder.experiment_id}.html")
    try:
        size = write_report(folder.path, path)
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror or error}", FAILED) from error
    result = {"id": folder.experiment_id, "file": str(path.absolute()), "bytes": size}
    say(as_json, result, f"{path} ({size_text(size)})")
