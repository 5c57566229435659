"""`pitchpipe validate`: check a config; with `--try`, run one trial of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..verb import verb

if TYPE_CHECKING:
    from ...config import ExperimentConfig

__all__ = ["validate"]


@verb("validate", "pitchpipe validate experiment.yml", "pitchpipe validate experiment.yml --try --seconds 30")
@click.argument("config", type=click.Path(path_type=Path), metavar="CONFIG")
@click.option("--try", "is_tried", is_flag=True, help="Run one trial, and forecast run time and disk usage.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="The longest time that the trial of --try may run.",
)
def validate(config: Path, is_tried: bool, seconds: float) -> int:
    """Check a config as `run` does, and start nothing.

    All problems are listed with file:line:column and a hint (exit code 2). The tuner and the assessor are
    constructed once, in a child process. If trials run on this machine, their CPUs, memory, GPUs and command
    must exist (else exit code 1). With --try one trial runs for a few seconds where the config says (also on a
    Ray cluster), with the tuner's first parameters; nothing of it is kept. Exit code 1 if it fails.
    """
    from ..making import check_startable, checked_config

    with Interrupts() as interrupts:
        checked = checked_config(config)
        _say(config, checked)
        check_startable(checked)
        return _try(checked, seconds, interrupts) if is_tried else 0


def _say(path: Path, checked: ExperimentConfig) -> None:
    from ...manager import warm_start_notes

    tuner, assessor = checked.tuner, checked.assessor
    click.echo(f"{path}: the config is valid")
    click.echo(f"  parameters    {', '.join(checked.search_space or {})}")
    click.echo(f"  tuner         {tuner.name or tuner.class_name}")
    if assessor is not None:
        click.echo(f"  assessor      {assessor.name or assessor.class_name}")
    click.echo(f"  objective     {checked.goal}")
    for note in filter(None, [checked.repeats_note, *warm_start_notes(checked)]):
        click.echo(f"  {note}")
    click.echo(
        f"  trials        {checked.trial_concurrency} at a time, on {checked.training_service.platform}"
    )


def _try(checked: ExperimentConfig, seconds: float, interrupts: Interrupts) -> int:
    from ..trying import forecast_lines, tried_lines, try_config

    interrupts.hold()
    tried = try_config(checked, seconds, interrupts)
    if interrupts.count:
        return INTERRUPTED
    for line in (*tried_lines(tried), *forecast_lines(tried, checked)):
        click.echo(line)
    return FAILED if tried.has_failed else 0
