"""`pitchpipe create`: an experiment in the background."""

from __future__ import annotations

from pathlib import Path

import click

from ..interrupts import Interrupts
from ..printing import print_warning
from ..verb import new_experiment_options, verb, watch_options

__all__ = ["create"]


@verb(
    "create",
    "pitchpipe create experiment.yml",
    "pitchpipe create experiment.yml --experiment-id nightly --json",
)
@new_experiment_options
@watch_options
def create(
    config: Path,
    overrides: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Start the experiment that CONFIG describes in the background.

    The config is checked first, as by `run`. The experiment then runs in a separate process, and its id is
    printed as soon as trials can run. That process writes to logs/manager.log in the experiment's folder.
    """
    with Interrupts() as interrupts:
        from ..background import run_in_background
        from ..new_experiment import make_experiment

        manager = make_experiment(config, experiment_id, directory, interrupts, overrides)
        for note in () if quiet else manager.notes:
            click.echo(note, err=True)  # only the id goes to stdout
        for warning in manager.start_warnings:
            print_warning(config, warning)
        # The background process acquires it.
        manager.store.close()
        manager.folder.disown()
        return run_in_background(manager.folder, interrupts, as_json=as_json, quiet=quiet)
