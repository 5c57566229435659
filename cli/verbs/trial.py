"""`pitchpipe trial show`, `log` and `kill`: one trial."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from ...runner import TrialStatus
from ...store import ExperimentFolder
from ...store.reading import (
    Attempt,
    ExperimentView,
    FamilyRow,
    TrialDetail,
    duration_text,
    ending_beside,
    flat,
    hint_text,
    moment_text,
    number_text,
    repeat_text,
    repeats_text,
    result_text,
    to_json,
    trial_object,
    values_text,
    visible,
)
from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..lookup import chosen_trial, split_names
from ..printing import print_line
from ..verb import json_option, say, trial_options, verb

__all__ = ["kill", "show", "trial"]


_LAST = 10
_ORIGINS = {
    "defaults": "your defaults",
    "initial": "your initial_points",
    "warm_start": "the warm start: among the best of an earlier search",
    "customized": "a user: added to the search",
}


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
@click.option("--json", "as_json", is_flag=True, help="Print it in the format of export.")
@click.option("--why", is_flag=True, help="Show only why it ended, compared with others.")
def show(
    names: tuple[str, ...], experiment_id: str | None, directory: Path | None, as_json: bool, why: bool
) -> None:
    """Show everything about a trial, or with --why only the reason for its end."""
    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        found = chosen_trial(view, word)
        number = found.sequence_id
        reasons = ""
        if why:
            from ..why import why_lines

            if not as_json:
                for line in why_lines(view, number):
                    print_line(line)
                return
            reasons = "\n".join(why_lines(view, number))
        family = view.family(found)
        intermediate = [*view.results(number).get(number, {}).values()]
        exported = view.exports(number)
    if as_json:
        earlier = [{"sequence_id": number, **asdict(attempt)} for attempt in found.earlier_attempts]
        more = {"exported": exported, "earlier_attempts": earlier, "why": reasons}
        shown = trial_object(found, intermediate) | {name: value for name, value in more.items() if value}
        click.echo(to_json(shown).decode())
        return
    for line in _lines(folder, found, family, intermediate):
        print_line(line)
    for form, path in exported.items():
        click.echo(f"{'exported':13} {form}: {folder.path / path}")
    for line in _attempt_lines(found.earlier_attempts):
        print_line(line)


def _lines(
    folder: ExperimentFolder,
    found: TrialDetail,
    family: FamilyRow | None,
    intermediate: list[object],
) -> Iterator[str]:
    for name, value in _facts(folder, found, family, intermediate):
        if value not in (None, ""):
            yield f"{name:13} {value}"
    yield "parameters"
    parameters = {visible(name): value for name, value in flat(found.parameters).items()}
    width = max(map(len, parameters), default=0)
    yield from (f"  {name:{width}}  {number_text(value)}" for name, value in parameters.items())
    if found.error:
        yield "error"
        yield from (f"  {line}" for line in found.error.rstrip().splitlines())


def _facts(
    folder: ExperimentFolder,
    found: TrialDetail,
    family: FamilyRow | None,
    intermediate: list[object],
) -> Iterator[tuple[str, object]]:
    status, begin = found.status, found.start_time
    yield "trial", f"{found.sequence_id} ({found.trial_id}) of experiment {folder.experiment_id}"
    yield "from", _ORIGINS.get(found.parameter_source or "", "")
    yield "status", status
    yield "reason", found.reason
    yield "kind", found.kind
    yield "waiting", _why_waiting(folder, found.trial_id) if status == "WAITING" else ""
    yield "hint", hint_text(found.error or found.reason)
    yield "result", "" if found.final is None else result_text(found.final)
    yield "repeat", repeat_text(found)
    yield "family", "" if family is None else _family_text(family)
    yield "seed", found.seed
    yield "intermediate", _intermediate(intermediate)
    yield "started", _moment(begin)
    yield "ended", _moment(found.end_time)
    yield "took", "" if found.seconds is None else duration_text(found.seconds)
    yield "attempt", found.attempt if found.attempt > 1 else ""
    yield "checkpoint", found.checkpoint
    yield "budget", "" if found.budget is None else number_text(found.budget)
    yield "agent", found.agent if status in ("RUNNING", "FAILED") else ""
    yield "GPUs", ", ".join(map(str, found.gpus or ()))
    yield "process", found.pid if status == "RUNNING" else ""
    if status == "FAILED":
        yield "exit code", ending_beside(found.reason, found.exit_code).removeprefix("exit code ")
    files = folder.trial(found.sequence_id)
    yield "files", files if files.is_dir() else ""


def _family_text(family: FamilyRow) -> str:
    """Return the trials of a family, and their mean."""
    means = values_text(family, list(family.values)) if family.values else ""
    trials = ", ".join(map(str, family.repeats.trials))
    return f"trials {trials}" + (f"; {repeats_text(family)} {means}" if means else "")


def _intermediate(results: list[object]) -> str:
    if not results:
        return ""
    counted = "1 result" if len(results) == 1 else f"{len(results)} results"
    return f"{counted}: {'… ' if len(results) > _LAST else ''}{', '.join(map(result_text, results[-_LAST:]))}"


def _attempt_lines(earlier: list[Attempt]) -> Iterator[str]:
    """Yield why earlier attempts ended."""
    if earlier:
        yield "earlier attempts"
    for attempt in earlier:
        agent = attempt.agent and f"agent {attempt.agent}"
        ending = ending_beside(attempt.reason, attempt.exit_code)
        facts = ", ".join(filter(None, (attempt.kind, ending, agent)))
        yield f"  {attempt.attempt}: {attempt.outcome} ({facts}): {attempt.reason}"


def _why_waiting(folder: ExperimentFolder, trial_id: str) -> str:
    from ...manager.control import ControlError, ask_manager

    try:
        return ask_manager(folder.path, {"op": "status"}, timeout=2.0)["waiting"].get(trial_id, "")
    except ControlError:
        return "the experiment is not running"


def _moment(moment: float | None) -> str:
    return "" if moment is None else moment_text(moment)


@verb("kill", "pitchpipe trial kill 17", "pitchpipe trial kill k3x9a2bq Xy3fA")
@trial_options
@json_option
def kill(names: tuple[str, ...], experiment_id: str | None, directory: Path | None, as_json: bool) -> None:
    """Kill a trial; its status becomes USER_CANCELED, and the experiment continues."""
    from ...manager.control import ask_manager

    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        found = chosen_trial(view, word)
    which = f"trial {found.sequence_id} ({found.trial_id})"
    if TrialStatus(found.status).is_final:
        raise Failure(f"{which} has ended already: {found.status}", FAILED)
    if folder.manager() is None:
        raise Failure(
            f"experiment {folder.experiment_id} is not running: pitchpipe stop ends its remaining trials",
            FAILED,
        )
    ask_manager(folder.path, {"op": "kill", "trial": found.trial_id})
    killed = {"sequence_id": found.sequence_id, "trial_id": found.trial_id}
    say(as_json, {"id": folder.experiment_id, **killed}, f"{which} is being killed")
