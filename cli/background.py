"""Runs an experiment in a background process and waits until it has started or failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import click

from ..store import ExperimentFolder, shell_word
from .failures import FAILED, INTERRUPTED
from .interrupts import Interrupts

__all__ = ["announce", "run_in_background"]


def run_in_background(folder: ExperimentFolder, interrupts: Interrupts, *, as_json: bool, quiet: bool) -> int:
    """Start the process, wait for its report and print it; return the exit code.

    Signals received while waiting are passed on: the experiment stops.
    """
    ours, its = os.pipe()
    with os.fdopen(ours, "rb") as news:
        process = _spawn(folder, its)
        with interrupts.notifying(lambda: process.send_signal(signal.SIGTERM)):
            if interrupts.count:
                process.send_signal(signal.SIGTERM)
            line = news.readline()
            if not line:
                process.wait()
    return _report(folder, json.loads(line or b"{}"), interrupts.count > 0, as_json=as_json, quiet=quiet)


def announce(descriptor: int, news: dict[str, Any]) -> None:
    """Report to the process that waits in `run_in_background`."""
    with os.fdopen(descriptor, "wb") as line:
        try:
            line.write(json.dumps(news).encode() + b"\n")
        except BrokenPipeError:
            return  # it no longer waits


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
    folder: ExperimentFolder, news: dict[str, Any], interrupted: bool, *, as_json: bool, quiet: bool
) -> int:
    from ..store.reading import ExperimentView, to_json
    from .outcome import command_for, outcome_lines, summary_object

    with ExperimentView(folder) as view:
        summary = view.summary()
        found, lines = summary_object(view, summary), list(outcome_lines(view, summary))
    runs = bool(news) and not interrupted
    if as_json:
        click.echo(to_json({**found, **news} if runs else found).decode())
    elif not runs:
        for line in lines:
            click.echo(line, err=True)
        click.echo(f"its log is {folder.logs / 'manager.log'}", err=True)
    elif quiet:
        click.echo(folder.experiment_id)
    else:
        click.echo(f"experiment {folder.experiment_id} runs in {folder.path} (process {news['pid']})")
        click.echo(f"to see its status: {command_for(folder, 'status')}")
        click.echo(f"to read its log: tail -f {shell_word(folder.logs / 'manager.log')}")
        click.echo(f"to stop it: {command_for(folder, 'stop')}")
    if interrupted:
        return INTERRUPTED
    return 0 if runs or summary.status == "DONE" else FAILED
