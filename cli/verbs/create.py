"""`pitchpipe create`: an experiment in the background, which `resume --detach` starts, too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..printing import print_warning
from ..verb import new_experiment_options, resume_if_exists_option, verb, watch_options

if TYPE_CHECKING:
    from ...store import ExperimentFolder


@verb(
    "create",
    "pitchpipe create experiment.yml",
    "pitchpipe create experiment.yml --experiment-id nightly --json",
)
@new_experiment_options
@resume_if_exists_option
@watch_options
def create(
    config: Path,
    overrides: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    resume_if_exists: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Start the experiment that CONFIG describes in the background.

    The config is checked first, as by `run`. The experiment then runs in a separate process, and its id is
    printed as soon as trials can run. That process writes to logs/manager.log in the experiment's folder.
    """
    with Interrupts() as interrupts:
        from ..new_experiment import make_experiment

        manager = make_experiment(
            config, experiment_id, directory, interrupts, overrides, resume_if_exists=resume_if_exists
        )
        for note in () if quiet else manager.notes:
            click.echo(note, err=True)  # only the id goes to stdout
        for warning in manager.start_warnings:
            print_warning(config, warning)
        # The background process acquires it.
        manager.store.close()
        manager.folder.disown()
        return run_in_background(manager.folder, interrupts, as_json=as_json, quiet=quiet)


def run_in_background(folder: ExperimentFolder, interrupts: Interrupts, *, as_json: bool, quiet: bool) -> int:
    """Start the process, wait until it announces that trials can run or ends, and print that; return the exit code.

    Signals received while waiting are passed on: the experiment stops.
    """
    ours, its = os.pipe()
    with os.fdopen(ours, "rb") as announcement:
        process = _spawn(folder, its)
        with interrupts.notifying(lambda: process.send_signal(signal.SIGTERM)):
            if interrupts.count:
                process.send_signal(signal.SIGTERM)
            line = announcement.readline()
            if not line:
                process.wait()
    announced = json.loads(line)["pid"] if line else None
    return _report(folder, announced, interrupts.count > 0, as_json=as_json, quiet=quiet)


def _spawn(folder: ExperimentFolder, descriptor: int) -> subprocess.Popen[bytes]:
    package = __name__.partition(".")[0]
    words = ["resume", str(folder.path), "--quiet", "--announce-fd", str(descriptor)]
    try:
        with (folder.logs / "manager.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", package, *words],
                pass_fds=[descriptor],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    finally:
        os.close(descriptor)


def _report(
    folder: ExperimentFolder, announced: int | None, interrupted: bool, *, as_json: bool, quiet: bool
) -> int:
    """Print what became of the process; `announced` is its number if trials can run, else None."""
    from ...store import shell_word
    from ...store.reading import ExperimentView, to_json
    from ..outcome import command_for, outcome_lines, summary_object

    with ExperimentView(folder) as view:
        summary = view.summary()
        outcome, lines = summary_object(view, summary), list(outcome_lines(view, summary))
    runs = announced is not None and not interrupted
    if as_json:
        click.echo(to_json({**outcome, "pid": announced} if runs else outcome).decode())
    elif not runs:
        for line in lines:
            click.echo(line, err=True)
        click.echo(f"its log is {folder.logs / 'manager.log'}", err=True)
    elif quiet:
        click.echo(folder.experiment_id)
    else:
        click.echo(f"experiment {folder.experiment_id} runs in {folder.path} (process {announced})")
        click.echo(f"to see its status: {command_for(folder, 'status')}")
        click.echo(f"to read its log: tail -f {shell_word(folder.logs / 'manager.log')}")
        click.echo(f"to stop it: {command_for(folder, 'stop')}")
    if interrupted:
        return INTERRUPTED
    return 0 if runs or summary.status == "DONE" else FAILED
