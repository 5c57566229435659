"""`pitchpipe list` and `pitchpipe status`: experiments as stored in their databases."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from ...protocol import JsonObject
from ...store import ExperimentFolder, StoreError
from ...store.reading import ExperimentView, QueryError, Summary, to_json
from ...telling import (
    best_result_text,
    counts_text,
    duration_text,
    gain_text,
    left_text,
    pace_text,
    standing_text,
    visible,
)
from ..failures import Failure
from ..lookup import chosen_experiment, experiments_directory
from ..outcome import (
    best_lines,
    can_resume,
    chosen_best,
    command_for,
    continue_line,
    failure_lines,
    reason_lines,
    summary_object,
)
from ..printing import print_line, print_table
from ..verb import best_by_option, directory_option, experiment_options, verb

_SURELY = 5.0  # seconds between the manager's estimate and that of a reader
_WAITS_HEAD = ("waits for", "since", "at most", "then")
_HEAD = ("id", "status", "trials", "best", "ran for", "made", "name")


@verb("list", "pitchpipe list", "pitchpipe list --dir runs --json")
@directory_option
@click.option("--running", is_flag=True, help="Only those that are running.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_experiments(directory: Path | None, running: bool, as_json: bool) -> None:
    """List the experiments of a directory, the newest first."""
    named, directory = directory, experiments_directory(directory)
    if named is not None and not directory.is_dir():
        click.echo(f"there is no folder {named}", err=True)
    read = map(_read, ExperimentFolder.all(directory))
    listed = [experiment for experiment in read if experiment.is_running or not running]
    listed.sort(key=lambda experiment: experiment.created, reverse=True)
    if as_json:
        click.echo(to_json([_object(experiment) for experiment in listed]).decode())
    elif listed:
        print_table(_HEAD, map(_row, listed))
    else:
        click.echo(f"there are no {'running experiments' if running else 'experiments'} in {directory}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """An experiment in the list; without a `summary` it cannot be read, and `reason` says why."""

    folder: ExperimentFolder
    is_running: bool
    summary: Summary | None = None
    best: float | dict[str, float] | None = None
    reason: str = ""

    @property
    def created(self) -> float:
        return 0.0 if self.summary is None else self.summary.created


def _read(folder: ExperimentFolder) -> _Listed:
    is_running = folder.manager() is not None
    try:
        with ExperimentView(folder) as view:
            summary, best = view.summary(), view.best_result()
    except StoreError as error:
        return _Listed(folder=folder, is_running=is_running, reason=str(error))
    is_running = is_running or bool(summary.has_program)
    return _Listed(folder=folder, is_running=is_running, summary=summary, best=best)


def _object(experiment: _Listed) -> Mapping[str, object]:
    """Return the object that scripts get."""
    folder, summary = experiment.folder, experiment.summary
    place = {"id": folder.experiment_id, "folder": str(folder.path), "running": experiment.is_running}
    if summary is None:
        return {**place, "status": "UNREADABLE", "reason": experiment.reason}
    return {
        **place,
        "name": summary.name,
        "status": summary.status,
        "counts": summary.counts,
        "created": summary.created,
        "run_time": summary.run_time,
        "search": summary.is_search,
        "best": experiment.best,
        **({"front": len(summary.best)} if len(summary.objectives) > 1 else {}),
        **({"closest": summary.closest} if summary.outcome_limits else {}),
    }


def _row(experiment: _Listed) -> tuple[str, ...]:
    summary = experiment.summary
    if summary is None:
        return (experiment.folder.experiment_id, "UNREADABLE", "", "", "", "", experiment.reason)
    front = len(summary.best) if len(summary.objectives) > 1 else 1
    return (
        summary.id,
        standing_text(summary),
        str(summary.trials),
        best_result_text(experiment.best, front) if summary.closest is None else "none keeps the limits",
        duration_text(summary.run_time),
        time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.created)),
        visible(summary.name or ""),
    )


@verb("status", "pitchpipe status", "pitchpipe status k3x9a2bq --json", "pitchpipe status --why")
@experiment_options
@best_by_option
@click.option(
    "--why", is_flag=True, help="Show all that the experiment waits for, how long, and what happens then."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, like run --json.")
def status(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    best_by: str | None,
    why: bool,
    as_json: bool,
) -> None:
    """Show the status of an experiment, running or not.

    ID is an experiment's id or its beginning.  [default: the one that is running, else the newest]
    """
    with ExperimentView(chosen_experiment(experiment, experiment_id, directory)) as view:
        if why:
            _show_waits(view, as_json)
            return
        try:
            whole = view.summary()
            summary = chosen_best(view, whole, best_by)
        except QueryError as error:
            raise Failure(f"--best-by: {error}") from error
        if as_json:
            manager = view.folder.manager()
            state: JsonObject = {"running": bool(summary.has_program)}
            state |= {} if manager is None else {"running": True, "pid": manager.pid}
            click.echo(to_json({**summary_object(view, summary), **state}).decode())
            return
        for line in _status_lines(view, summary, gain_text(whole)):
            print_line(line)


def _show_waits(view: ExperimentView, as_json: bool) -> None:
    """Print what the manager waits for."""
    from ...manager.control import ControlError, manager_status

    folder, summary, waits = view.folder, view.summary(), list[JsonObject]()
    if folder.manager() is not None:
        try:
            waits = manager_status(folder.path)["waits"]
        except ControlError as error:
            raise Failure(f"{error}") from error
    if as_json:
        click.echo(to_json(waits).decode())
    elif waits:
        print_table(_WAITS_HEAD, map(_wait_row, waits))
    else:
        print_line(f"experiment {summary.id} waits for nothing: {_status_text(folder, summary)}")


def _wait_row(wait: JsonObject) -> tuple[str, ...]:
    since, longest = wait["since"], wait["longest"]
    return (
        visible(wait["what"]),
        "" if since is None else duration_text(max(0.0, time.time() - since)),
        "" if longest is None else duration_text(longest),
        visible(wait["then"]),
    )


def _status_lines(view: ExperimentView, summary: Summary, gain: str) -> Iterator[str]:
    named = f" ({visible(summary.name)})" if summary.name else ""
    yield f"experiment {summary.id}{named}: {_status_text(view.folder, summary)}"
    yield from reason_lines(summary)
    total = summary.limits["max_trial_number"]
    counted = counts_text(summary.counts) or "none yet"
    yield f"trials: {summary.trials}{f' of {total}' if total else ''} ({counted})"
    yield f"ran for {duration_text(summary.run_time)}"
    if not summary.is_abandoned:
        yield from _live_lines(view.folder, summary)
    yield from best_lines(view, summary, gain)
    yield from failure_lines(view, summary)
    yield f"everything is in {summary.folder}"
    if can_resume(view.folder, summary):
        yield continue_line(view.folder, summary)


def _status_text(folder: ExperimentFolder, summary: Summary) -> str:
    """Return the status, with a hint if the experiment has lost its manager."""
    status = standing_text(summary)
    return f"{status}: {command_for(folder, 'resume')}" if summary.is_abandoned else status


def _live_lines(folder: ExperimentFolder, summary: Summary) -> Iterator[str]:
    """Yield what only the manager knows; nothing if there is none."""
    from ...manager.control import ControlError, manager_status

    if folder.manager() is None:
        return
    try:
        state = manager_status(folder.path)
    except ControlError:
        return
    facts = [f"running in process {state['pid']}"]
    facts.append(pace_text(60.0 * (state.get("rate") or 0.0), summary.results_per_minute))
    remaining, is_bound = state.get("remaining"), state.get("is_bound", False)
    estimated = summary.remaining if summary.results_per_minute else None
    if estimated is not None and (remaining is None or not is_bound or estimated < remaining - _SURELY):
        remaining, is_bound = estimated, False  # from the curves: the manager knows only how often trials end
    if remaining is not None:
        facts.append(left_text(remaining, is_bound))
    yield ", ".join(filter(None, facts))
    for trial, why in list(state["waiting"].items())[:1]:
        yield f"trial {trial} is waiting: {why}"
    yield from state.get("warnings", ())
