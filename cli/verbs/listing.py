"""`pitchpipe list` and `pitchpipe status`: experiments as stored in their databases."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..verb import directory_option, experiment_options, verb

if TYPE_CHECKING:
    from ...store import ExperimentFolder
    from ..reading import ViewedExperiment

__all__ = ["list_experiments", "status"]

_HEAD = ("id", "status", "trials", "best", "ran for", "made", "name")


@verb("list", "pitchpipe list", "pitchpipe list --dir runs --json")
@directory_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def list_experiments(directory: Path | None, as_json: bool) -> None:
    """List the experiments of a directory, the newest first."""
    from ...store import ExperimentFolder, default_directory
    from ..table import print_table

    directory = (directory or default_directory()).expanduser().absolute()
    found = [_facts(folder) for folder in ExperimentFolder.all(directory)]
    found.sort(key=lambda facts: facts.get("created") or 0.0, reverse=True)
    if as_json:
        click.echo(json.dumps(found))
    elif found:
        print_table(_HEAD, map(_row, found))
    else:
        click.echo(f"there are no experiments in {directory}")


@verb("status", "pitchpipe status", "pitchpipe status k3x9a2bq --json")
@experiment_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, like run --json.")
def status(experiment: str | None, experiment_id: str | None, directory: Path | None, as_json: bool) -> None:
    """Show the status of an experiment, running or not.

    ID is an experiment's id or its beginning.  [default: the one that is running, else the newest]
    """
    from ..finding import chosen_experiment
    from ..reading import read

    folder = chosen_experiment(experiment, experiment_id, directory)
    view = read(folder)
    if as_json:
        click.echo(json.dumps({**view.summary, "running": folder.manager() is not None}))
        return
    for line in _status_lines(view):
        click.echo(line)


def _status_lines(view: ViewedExperiment) -> Iterator[str]:
    from ...store.reading import counts_text, duration_text
    from ..outcome import best_lines, failure_lines
    from ..reading import is_abandoned

    row = view.row
    named = f" ({row.name})" if row.name else ""
    yield f"experiment {row.id}{named}: {standing(view.folder, row.status)}"
    if row.reason:
        yield f"reason: {row.reason}"
    if row.error:
        yield from (f"  {line}" for line in row.error.rstrip().splitlines())
    total = row.config.get("maxTrialNumber")
    yield f"trials: {view.total}{f' of {total}' if total else ''} ({counts_text(view.counts) or 'none yet'})"
    yield f"ran for {duration_text(row.run_time)}"
    if not is_abandoned(view.folder, row.status):
        yield from _live_lines(view.folder)
    yield from best_lines(view)
    yield from failure_lines(view)
    yield f"everything is in {view.folder.path}"


def standing(folder: ExperimentFolder, status: str) -> str:
    """Return the status in words; an experiment that lost its manager is marked."""
    from ..outcome import command_for
    from ..reading import is_abandoned

    if is_abandoned(folder, status):
        return f"{status}, but its manager is gone: {command_for(folder, 'resume')}"
    return status


def _live_lines(folder: ExperimentFolder) -> Iterator[str]:
    """Yield what only the manager knows; nothing without one."""
    from ...manager.control import ControlError, ask_manager
    from ...store.reading import left_text, rate_text

    if folder.manager() is None:
        return
    try:
        answer = ask_manager(folder.path, {"op": "status"}, timeout=2.0)
    except ControlError:
        return
    facts = [f"running in process {answer['pid']}"]
    if answer.get("rate"):
        facts.append(rate_text(answer["rate"]))
    if answer.get("remaining") is not None:
        facts.append(left_text(answer["remaining"], answer.get("is_bound", False)))
    yield ", ".join(facts)
    for trial, why in list(answer.get("waiting", {}).items())[:1]:
        yield f"trial {trial} is waiting: {why}"
    yield from answer.get("troubles", ())


def _facts(folder: ExperimentFolder) -> dict[str, Any]:
    """Return the facts for the list; an unreadable experiment has the reason."""
    from ...store import StoreError
    from ..reading import objectives_of_row, viewed

    try:
        with viewed(folder) as store:
            row, counts = store.experiment(), store.counts()
            objectives = objectives_of_row(row)
            best = (
                store.best_value(objectives[0].name, objectives[0].direction)
                if len(objectives) == 1
                else None
            )
    except (StoreError, ValueError) as error:
        return {
            "id": folder.experiment_id,
            "folder": str(folder.path),
            "status": "UNREADABLE",
            "reason": str(error),
        }
    return {
        "id": row.id,
        "name": row.name,
        "status": row.status,
        "running": folder.manager() is not None,
        "folder": str(folder.path),
        "counts": counts,
        "best": best,
        "created": row.created,
        "run_time": row.run_time,
    }


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    from ...runner import ExperimentStatus
    from ...store.reading import duration_text, number_text

    if "counts" not in facts:
        return (facts["id"], facts["status"], "", "", "", "", facts["reason"])
    gone = not facts["running"] and not ExperimentStatus(facts["status"]).is_final
    return (
        facts["id"],
        facts["status"] + (" (manager gone)" if gone else ""),
        str(sum(facts["counts"].values())),
        "" if facts["best"] is None else number_text(facts["best"]),
        duration_text(facts["run_time"]),
        time.strftime("%Y-%m-%d %H:%M", time.localtime(facts["created"])),
        facts["name"] or "",
    )
