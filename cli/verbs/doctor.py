"""`pitchpipe doctor`: checks of the machine and the installation, and a small experiment."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..failures import FAILED, INTERRUPTED
from ..interrupts import Interrupts
from ..printing import print_line
from ..verb import directory_option, verb

if TYPE_CHECKING:
    from ..diagnosis import Finding

__all__ = ["doctor"]

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "red")}
_PATIENCE = 60.0
_SCRIPT = 'echo \'{"final": 1}\' >> "$PITCHPIPE_REPORTS"'


@verb("doctor", "pitchpipe doctor", "pitchpipe doctor --ray --json")
@directory_option
@click.option("--ray", "with_ray", is_flag=True, help="Also run the small experiment on Ray.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def doctor(directory: Path | None, with_ray: bool, as_json: bool) -> int:
    """Check this machine and this installation, and run an experiment of one trial.

    Prints one line per check: ok, warn or FAIL, and what to do about it. Exit code: 0, or 1 if a check fails.
    """
    from ..lookup import experiments_directory

    directory = experiments_directory(directory)
    found = []
    with Interrupts() as interrupts:
        interrupts.hold()
        for finding in _all(directory, with_ray, interrupts):
            found.append(finding)
            if not as_json:
                _show(finding)
            if interrupts.count:
                return INTERRUPTED
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found]))
    return FAILED if any(finding.level == "fail" for finding in found) else 0


def _all(directory: Path, with_ray: bool, interrupts: Interrupts) -> Iterator[Finding]:
    from ...config import PLATFORMS
    from ..diagnosis import findings

    yield from findings(directory)
    for platform in PLATFORMS:
        if with_ray or platform != "ray":
            yield _one_trial(platform, interrupts)


def _one_trial(platform: str, interrupts: Interrupts) -> Finding:
    """Run one trial: manager, dispatcher, agent and store work together."""
    from ...config import ExperimentConfig
    from ...executors import ExecutorError
    from ...store import RuntimeDirectoryError
    from ..diagnosis import Finding
    from ..trying import tried_lines, try_config

    service = {"platform": platform} | ({"idle_timeout": 0} if platform == "ray" else {})
    config = ExperimentConfig.from_dict(
        {
            "search_space": {"x": {"_type": "uniform", "_value": [0, 1]}},
            "trial_command": _SCRIPT,
            "tuner": {"name": "Random"},
            "training_service": service,
        },
        "/",  # the working directory may have been deleted
    )
    began = time.monotonic()
    subject = f"a trial ({platform})"
    try:
        tried = try_config(config, _PATIENCE, interrupts)
    except (ExecutorError, RuntimeDirectoryError) as error:
        return Finding("fail", subject, str(error))
    if not tried.is_whole:
        return Finding("fail", subject, "; ".join(tried_lines(tried, config)))
    return Finding("ok", subject, f"ran and reported, {time.monotonic() - began:.1f} s in all")


def _show(finding: Finding) -> None:
    mark, colour = _MARKS[finding.level]
    print_line(mark, fg=colour, nl=False)
    print_line(f"  {finding.subject:16}  {finding.text}")
    if finding.hint:
        print_line(f"{'':24}{finding.hint}")
