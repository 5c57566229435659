"""`pitchpipe validate`: check a config; with `--try`, run one trial of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...trial_agent import usable_cpus
from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..printing import print_warning
from ..verb import config_options, json_option, say, verb

if TYPE_CHECKING:
    from ...config import ExperimentConfig
    from ..trying import Tried

__all__ = ["validate"]


@verb("validate", "pitchpipe validate experiment.yml", "pitchpipe validate experiment.yml --try --seconds 30")
@config_options
@click.option(
    "--try", "is_tried", is_flag=True, help="Run the first trials, and forecast run time and disk usage."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="The longest time that the trials of --try may run.",
)
@json_option
def validate(config: Path, overrides: tuple[str, ...], is_tried: bool, seconds: float, as_json: bool) -> int:
    """Check a config as `run` does, and start nothing.

    All problems are listed with file:line:column and a hint (exit code 2). The tuner and the assessor are
    constructed once, in a child process. If trials run on this machine, or on a private Ray, their CPUs, memory,
    GPUs, command and script must exist (else exit code 1). With --try as many trials as run at a time run for a few
    seconds where the config says (also on a Ray cluster), with the tuner's first parameters; nothing of them is
    kept. Exit code 1 if one fails.
    """
    with Interrupts() as interrupts:
        from ..new_experiment import check_startable, checked_config, placed

        checked = checked_config(config, overrides)
        check_startable(checked, config, overrides)
        with placed(config, overrides):
            notes, warnings = _warm_start_notes(checked)
        for warning in warnings:
            print_warning(config, warning)
        found, lines = _facts(config, checked, notes)
        # A trial that fits alone has no other beside it, neither when it is tried nor in the forecast.
        checked = checked.model_copy(update={"trial_concurrency": found["at_a_time"]})
        if not as_json:
            say(as_json, found, *lines)
        tried = _tried(checked, seconds, interrupts) if is_tried else None
        if interrupts.count:
            return INTERRUPTED
        if as_json:
            say(as_json, found if tried is None else {**found, "tried": asdict(tried)})
        elif tried is not None:
            from ..trying import forecast_lines, tried_lines

            say(as_json, found, *tried_lines(tried, checked), *forecast_lines(tried, checked))
        return FAILED if tried is not None and tried.has_failed else 0


def _facts(path: Path, checked: ExperimentConfig, notes: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what a valid config says, for scripts and as lines; `notes` are those on its warm start."""
    from ...manager import most_at_once

    tuner, assessor, at_once = checked.tuner, checked.assessor, most_at_once(checked)
    found = {
        "config": str(path),
        "parameters": list(checked.search_space or {}),
        "tuner": tuner.name or tuner.class_name,
        "assessor": None if assessor is None else assessor.name or assessor.class_name,
        "objective": checked.goal,
        "notes": [*filter(None, [checked.repeats_note, checked.assessor_note, *notes])],
        "trial_concurrency": checked.trial_concurrency,
        "at_a_time": at_once,
        "platform": checked.training_service.platform,
    }
    lines = [
        f"{path}: the config is valid",
        f"  parameters    {', '.join(found['parameters'])}",
        f"  tuner         {found['tuner']}",
        *([] if assessor is None else [f"  assessor      {found['assessor']}"]),
        f"  objective     {found['objective']}",
        *(f"  {note}" for note in found["notes"]),
        f"  trials        {at_once} at a time, on {found['platform']}{_machine(checked)}",
    ]
    if at_once < checked.trial_concurrency:
        lines.append(
            f"  trial_concurrency is {checked.trial_concurrency}, and this machine has room for {at_once}"
        )
    return found, lines


def _warm_start_notes(checked: ExperimentConfig) -> tuple[Sequence[str], Sequence[str]]:
    if not checked.warm_start:
        return (), ()
    from ...manager import warm_start_notes  # importing the manager takes longer than the check

    return warm_start_notes(checked)


def _machine(checked: ExperimentConfig) -> str:
    if checked.training_service.platform != "local":
        return ""
    count = usable_cpus()
    return f" ({count} CPU{'s' * (count > 1)}, which the trials share)"


def _tried(checked: ExperimentConfig, seconds: float, interrupts: Interrupts) -> Tried:
    from ..trying import try_config

    interrupts.hold()
    return try_config(checked, seconds, interrupts)
