"""`pitchpipe run`: an experiment in the foreground."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..failures import FAILED
from ..interrupts import INTERRUPTED, Interrupts
from ..pages import RunPages, pages_options
from ..verb import new_experiment_options, verb, watch_options

if TYPE_CHECKING:
    from ...manager import Manager
    from ...store import ExperimentFolder

__all__ = ["run", "watched"]

_COLOURS = {"DONE": "green", "ERROR": "red"}


@verb(
    "run",
    "pitchpipe run experiment.yml",
    "pitchpipe run experiment.yml --ui",
    "pitchpipe run experiment.yml --dir runs --json > result.json",
)
@new_experiment_options
@watch_options
@pages_options
def run(
    config: Path,
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    quiet: bool,
    with_pages: bool,
    ui_port: int | None,
    keep_ui: bool,
) -> int:
    """Run the experiment that CONFIG describes, and watch it.

    CONFIG is a YAML or JSON file. Ctrl-C stops the experiment: results are kept, and `pitchpipe resume`
    continues it. A second Ctrl-C kills the running trials. Exit codes: 0 done, 1 the experiment failed or no
    trial has succeeded, 2 bad config or usage, 130 interrupted.
    """
    from ..making import make_experiment

    with Interrupts() as interrupts:
        manager = make_experiment(config, experiment_id, directory, interrupts)
        if not (with_pages or keep_ui or ui_port is not None):
            return watched(manager, interrupts, as_json=as_json, quiet=quiet)
        with RunPages(manager.folder, ui_port, lambda line: click.echo(line, err=True)) as pages:
            code = watched(manager, interrupts, as_json=as_json, quiet=quiet)
            if keep_ui:
                pages.stay(interrupts)
            return code


def watched(
    manager: Manager, interrupts: Interrupts, *, as_json: bool, quiet: bool, announce_fd: int | None = None
) -> int:
    """Run a manager with a display, report the outcome, and return the exit code.

    Writes to `announce_fd` when trials can run: another process waits for it.
    """
    from ..background import announce
    from ..displays import make_display
    from ..running import RunningExperiment

    folder = manager.folder
    output = sys.stderr if as_json else sys.stdout
    display = make_display(output, sys.stderr, quiet=quiet, lines=not as_json)
    if not quiet and not as_json:
        click.echo(f"experiment {folder.experiment_id} in {folder.path}")
        if manager.config.direction_note:
            click.echo(manager.config.direction_note)
    running = RunningExperiment(manager, display, interrupts)
    if announce_fd is not None:
        running.on_running = lambda: announce(announce_fd, {"pid": os.getpid()})
    interrupted = running.run()
    return report(folder, interrupted, running.error, as_json=as_json)


def report(folder: ExperimentFolder, interrupted: bool, error: str, *, as_json: bool) -> int:
    """Report how a run ended, and return the exit code; `error` is why it could not continue."""
    from ..outcome import outcome_lines
    from ..reading import read
    from .ray import staying_line

    view = read(folder)
    if error:
        # Report it even if it could not be stored (the disk is full).
        view.row.status, view.row.reason = "ERROR", error
    if as_json:
        click.echo(json.dumps(view.summary))
    else:
        first, *others = outcome_lines(view)
        click.secho(first, bold=True, fg=_COLOURS.get(view.row.status))  # colours only on a terminal
        for line in others:
            click.secho(line, bold=line.startswith("best:"))
        if staying := staying_line(view.row.config):
            click.echo(staying)
    if view.row.status == "DONE":
        return FAILED if view.all_failed else 0
    return INTERRUPTED if interrupted or view.row.status == "STOPPED" else FAILED
