"""`pitchpipe validate`: all that is wrong with a config, and nothing started."""

from __future__ import annotations

from pathlib import Path

import click

from .interrupts import Interrupts
from .verb import verb

__all__ = ["validate"]


@verb("validate", "pitchpipe validate experiment.yml")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG")
def validate(config: Path) -> None:
    """Check a config as `run` does, and start nothing.

    All problems are listed with file:line:column and a hint (exit code 2). The tuner and the assessor are
    constructed once, in a process of their own.
    """
    from .making import checked_config

    with Interrupts():
        checked = checked_config(config)
    tuner, assessor = checked.tuner, checked.assessor
    click.echo(f"{config} is good: nothing is wrong with it")
    click.echo(f"  parameters   {', '.join(checked.search_space or {})}")
    click.echo(f"  tuner        {tuner.name or tuner.class_name}")
    if assessor is not None:
        click.echo(f"  assessor     {assessor.name or assessor.class_name}")
    click.echo(
        f"  trials       {checked.trial_concurrency} at a time, on {checked.training_service.platform}"
    )
