"""`pitchpipe top`: an experiment on the whole screen of another terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...store.reading import ExperimentView, FamilyRow, QueryError, Summary, TrialQuery, TrialRow
from ...telling import (
    best_intermediate_text,
    closest_text,
    counts_text,
    duration_text,
    escaped,
    experiment_text,
    failed_text,
    left_text,
    pace_text,
    parameters_text,
    region_text,
    repeats_text,
    result_text,
    standing_text,
    values_text,
    visible,
)
from ..failures import Failure
from ..lookup import chosen_experiment
from ..printing import drawing_stream
from ..verb import best_by_option, experiment_options, verb

_QUIT = ("q", "Q", "\x03")
_ENDED = ("SUCCEEDED", "FAILED", "EARLY_STOPPED", "USER_CANCELED", "SYS_CANCELED")
_MOST_BEST, _MOST_FAILURES = 5, 3
# Lines that are always shown, and lines of a table besides its rows.
_FRAME, _TABLE = 3, 3


@verb("top", "pitchpipe top", "pitchpipe top k3x9a2bq --every 5")
@experiment_options
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two refreshes.",
)
@best_by_option
def top(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    every: float,
    best_by: str | None,
) -> None:
    """Watch an experiment on the whole screen. Press q to leave; the experiment continues.

    Shows the running trials with their latest results, the best ones, those that ended last, and why trials
    failed. It only reads the experiment's database, and ends with the experiment.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("top needs a terminal: use pitchpipe status and pitchpipe trials instead")
    folder = chosen_experiment(experiment, experiment_id, directory)
    console = Console(file=drawing_stream(sys.stdout))
    drawn = Live(console=console, screen=True, auto_refresh=False)
    with ExperimentView(folder) as view:
        try:
            view.best(1, best_by)
        except QueryError as error:
            raise Failure(f"--best-by: {error}") from error
        with _keys() as next_key, drawn:
            while True:
                summary = view.summary()
                drawn.update(screen(view, summary, console.height, best_by), refresh=True)
                if not summary.is_running or _is_left(next_key, every):
                    break
    status = standing_text(summary)
    click.echo(f"experiment {folder.experiment_id} is {status}: for details, see pitchpipe status")


def _is_left(next_key: Callable[[float], str], seconds: float) -> bool:
    """Wait for the next refresh; return True as soon as a key is pressed that leaves."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if next_key(left) in _QUIT:
            return True
    return False


@contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Read keys as they are pressed, without an echo; yield a function that waits for a key."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def next_key(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1).decode(errors="replace") if ready else ""

    try:
        tty.setcbreak(descriptor)
        yield next_key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def screen(view: ExperimentView, summary: Summary, height: int, best_by: str | None = None) -> RenderableType:
    """Return what fits on `height` lines: the running trials come before those that have ended."""
    failures = view.failures()[: max(0, min(_MOST_FAILURES, height - _FRAME - 9))]
    regions = [region_text(region) for region in view.failure_regions()[: len(failures)]]
    left = height - _FRAME - len(failures) - len(regions)
    parts: list[RenderableType] = [_head(summary), _counts(summary)]
    if summary.closest is not None:
        closest = closest_text(summary.closest, summary.status, repeats=view.repeats())
        parts.append(Text(closest, style="yellow"))
        left -= 1
    if summary.best_intermediate is not None:
        parts.append(Text(f"best intermediate result: {best_intermediate_text(summary.best_intermediate)}"))
        left -= 1
    for title, trials, value in _tables(view, left, best_by):
        parts += [Text(), _table(title, trials, value)]
    parts += [_line(failed_text(group), "red") for group in failures]
    parts += [_line(region, "yellow") for region in regions]
    parts.append(Text("press q to leave; the experiment continues", style="dim"))
    return Group(*parts)


def _tables(
    view: ExperimentView, left: int, best_by: str | None
) -> Iterator[tuple[str, list[TrialRow], str]]:
    """Yield the tables that fit on `left` lines: title, trials, and which of their results is shown."""
    running = TrialQuery(statuses=("RUNNING", "PAUSED"), limit=max(1, left // 3))
    ended = TrialQuery(statuses=_ENDED, sort="end_time", descending=True, limit=left)
    few = min(_MOST_BEST, max(1, left // 4))
    for title, find, value in (
        ("running", lambda: view.trials(running).trials, "last"),
        ("best", lambda: view.best(few, best_by)[:few], "value"),
        ("ended last", lambda: view.trials(ended).trials, "value"),
    ):
        room = left - _TABLE
        if room > 0 and (trials := find()[:room]):
            left = room - len(trials)
            yield title, trials, value


def _line(text: str, style: str) -> Text:
    return Text(escaped(text), style=style, no_wrap=True, overflow="ellipsis")


def _head(summary: Summary) -> RenderableType:
    text = Text(no_wrap=True, overflow="ellipsis")
    if summary.name:
        text.append(f"{visible(summary.name)}  ", style="bold")
    text.append(summary.id, style="cyan")
    text.append(f"  {experiment_text(summary.status)}", style="bold")
    text.append(f"  ran for {duration_text(summary.run_time)}")
    if pace := pace_text(summary.trials_per_minute, summary.results_per_minute):
        text.append(f"  {pace}")
    if summary.remaining is not None:
        text.append(f"  {left_text(summary.remaining, at_most=False)}")
    return text


def _counts(summary: Summary) -> RenderableType:
    total = summary.limits["max_trial_number"]
    of = f" of {total}" if total is not None else ""
    return Text(f"{summary.trials}{of} trials: {counts_text(summary.counts) or 'none yet'}", style="dim")


def _table(title: str, trials: list[TrialRow], value: str) -> RenderableType:
    table = Table(
        title=f"{title} ({len(trials)})", title_justify="left", box=None, expand=True, pad_edge=False
    )
    has_repeats = any(isinstance(trial, FamilyRow) for trial in trials)
    wide = 22 if has_repeats else 0
    for name, width in (("#", 6), ("status", wide or 13), ("result", wide or 12), ("took", 10)):
        table.add_column(name, width=width, no_wrap=True)
    table.add_column("parameters", ratio=1, no_wrap=True, overflow="ellipsis")
    for trial in trials:
        cells = (
            str(trial.sequence_id),
            repeats_text(trial) or trial.status,
            _result(trial, value),
            "" if trial.seconds is None else duration_text(trial.seconds),
            parameters_text(trial.parameters),
        )
        table.add_row(*map(Text, cells))  # rich reads markup in a string
    return table


def _result(trial: TrialRow, value: str) -> str:
    """Return the last intermediate result or the final one; for repeats, the mean with its margin."""
    if value == "last":
        return "" if trial.last is None else result_text(trial.last)
    return values_text(trial, list(trial.values))
