"""`pitchpipe trial show`, `log` and `kill`: one trial."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..verb import trial_options, verb

if TYPE_CHECKING:
    from ...runner import AttemptRow, Trial
    from ...store import ExperimentFolder

__all__ = ["kill", "show", "trial"]


_LAST = 10


class _TrialGroup(LazyGroup):
    table = {  # noqa: RUF012
        "show": ("trial:show", "Show everything about a trial."),
        "log": ("trial_log:log", "Print the output of a trial."),
        "add": ("trial_add:add", "Run a trial with your own parameters."),
        "rerun": ("trial_rerun:rerun", "Rerun a trial in this terminal."),
        "kill": ("trial:kill", "Kill a trial; the experiment continues."),
    }


@click.group("trial", cls=_TrialGroup)
def trial() -> None:
    """Show, add, rerun or kill a trial; print its log.

    TRIAL is a trial's id or its sequence number. ID is the experiment.  [default: the one that is running,
    else the newest]

    \b
    Example:
      pitchpipe trial show 17
    """


@verb(
    "show",
    "pitchpipe trial show 17",
    "pitchpipe trial show 17 --why",
    "pitchpipe trial show k3x9a2bq Xy3fA --json",
)
@trial_options
@click.option("--json", "as_json", is_flag=True, help="Print it in the form of export.")
@click.option("--why", is_flag=True, help="Show only why it ended, compared with others.")
def show(
    names: tuple[str, ...], experiment_id: str | None, directory: Path | None, as_json: bool, why: bool
) -> None:
    """Show everything about a trial, or with --why only why it ended."""
    from ..exporting import attempt_object, metrics_of, trial_object
    from ..picking import chosen_trial, split_names
    from ..reading import viewed

    folder, word = split_names(names, experiment_id, directory)
    with viewed(folder) as store:
        found = chosen_trial(store, word)
        intermediate = metrics_of(store, found.sequence_id)
        earlier = store.attempts(found.sequence_id)
        exported = store.exports(found.sequence_id)
    if why:
        from ..why import why_lines

        click.echo("\n".join(why_lines(folder, found.sequence_id)))
        return
    if as_json:
        shown = trial_object(found, intermediate)
        if exported:
            shown["exported"] = exported
        if earlier:
            shown["earlier_attempts"] = [attempt_object(attempt) for attempt in earlier]
        click.echo(json.dumps(shown))
        return
    for line in _lines(folder, found, intermediate):
        click.echo(line)
    for form, path in exported.items():
        click.echo(f"{'exported':13} {form}: {folder.path / path}")
    for line in _attempt_lines(earlier):
        click.echo(line)


def _lines(folder: ExperimentFolder, found: Trial, intermediate: list[object]) -> Iterator[str]:
    from ...store.reading import flat, number_text

    for name, value in _facts(folder, found, intermediate):
        if value not in (None, ""):
            yield f"{name:13} {value}"
    yield "parameters"
    parameters = flat(json.loads(found.record)["parameters"])
    width = max(map(len, parameters), default=0)
    yield from (f"  {name:{width}}  {number_text(value)}" for name, value in parameters.items())
    if found.error:
        yield "error"
        yield from (f"  {line}" for line in found.error.rstrip().splitlines())


def _facts(
    folder: ExperimentFolder, found: Trial, intermediate: list[object]
) -> Iterator[tuple[str, object]]:
    from ...store.reading import duration_text, hint_text, number_text, result_text

    yield "trial", f"{found.sequence_id} ({found.trial_id}) of experiment {folder.experiment_id}"
    yield "status", found.status.value
    yield "reason", found.reason
    yield "kind", found.kind
    yield "waiting", _why_waiting(folder, found) if found.status == "WAITING" else ""
    yield "hint", hint_text(found.error or found.reason)
    yield "result", "" if found.final is None else result_text(json.loads(found.final))
    yield "intermediate", _intermediate(intermediate)
    yield "started", _moment(found.start_time)
    yield "ended", _moment(found.end_time)
    if found.start_time is not None:
        yield "took", duration_text((found.end_time or time.time()) - found.start_time)
    yield "attempt", found.attempt if found.attempt > 1 else ""
    yield "checkpoint", found.checkpoint
    yield "budget", "" if found.budget is None else number_text(found.budget)
    yield "agent", found.agent if found.status in ("RUNNING", "FAILED") else ""
    yield "GPUs", ", ".join(map(str, found.gpus or ()))
    yield "process", found.pid if found.status == "RUNNING" else ""
    if found.status == "FAILED":
        yield from _ending(found.exit_code)
    files = folder.trial(found.sequence_id)
    yield "files", files if files.is_dir() else ""


def _intermediate(results: list[object]) -> str:
    from ...store.reading import result_text

    if not results:
        return ""
    counted = "1 result" if len(results) == 1 else f"{len(results)} results"
    return f"{counted}: {'… ' if len(results) > _LAST else ''}{', '.join(map(result_text, results[-_LAST:]))}"


def _ending(exit_code: int | None) -> Iterator[tuple[str, object]]:
    from ...store.reading import ending_text

    if exit_code is not None and exit_code < 0:
        yield "signal", ending_text(exit_code).removeprefix("signal ")
    else:
        yield "exit code", exit_code


def _attempt_lines(earlier: list[AttemptRow]) -> Iterator[str]:
    """Yield why earlier attempts ended."""
    from ...store.reading import ending_text

    if earlier:
        yield "earlier attempts"
    for attempt in earlier:
        facts = (attempt.kind, ending_text(attempt.exit_code), attempt.agent and f"agent {attempt.agent}")
        details = ", ".join(fact for fact in facts if fact)
        yield f"  {attempt.attempt}: {attempt.outcome} ({details}): {attempt.reason}"


def _why_waiting(folder: ExperimentFolder, found: Trial) -> str:
    from ...manager.control import ControlError, ask_manager

    try:
        return ask_manager(folder.path, {"op": "status"}, timeout=2.0)["waiting"].get(found.trial_id, "")
    except ControlError:
        return "the experiment is not running"


def _moment(moment: float | None) -> str:
    from ...store.reading import moment_text

    return "" if moment is None else moment_text(moment)


@verb("kill", "pitchpipe trial kill 17", "pitchpipe trial kill k3x9a2bq Xy3fA")
@trial_options
def kill(names: tuple[str, ...], experiment_id: str | None, directory: Path | None) -> None:
    """Kill a trial; its status becomes USER_CANCELED, and the experiment continues."""
    from ...manager.control import ask_manager
    from ..picking import chosen_trial, split_names
    from ..reading import viewed

    folder, word = split_names(names, experiment_id, directory)
    with viewed(folder) as store:
        found = chosen_trial(store, word)
    if found.status.is_final:
        raise Failure(
            f"trial {found.sequence_id} ({found.trial_id}) has ended already: {found.status.value}", FAILED
        )
    if folder.manager() is None:
        raise Failure(
            f"experiment {folder.experiment_id} is not running: pitchpipe stop ends its remaining trials",
            FAILED,
        )
    ask_manager(folder.path, {"op": "kill", "trial": found.trial_id})
    click.echo(f"trial {found.sequence_id} ({found.trial_id}) is being killed")
