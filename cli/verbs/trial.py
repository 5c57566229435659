"""`pitchpipe trial show`, `log`, `add` and `kill`: one trial."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import IO

import click

from ...protocol import Parameters, counted
from ...runner import TrialStatus
from ...store import ExperimentFolder
from ...store.reading import (
    Attempt,
    ExperimentView,
    FamilyRow,
    Follow,
    NoScheduleError,
    Summary,
    TrialDetail,
    to_json,
    trial_object,
)
from ...telling import (
    SCHEDULE_HEADS,
    FailedTrial,
    changes_of_schedule,
    ending_beside,
    ending_of,
    facts_of,
    repeats_text,
    schedule_rows,
    values_text,
)
from ...trial_agent import output_name
from ..app import LazyGroup
from ..failures import FAILED, Failure
from ..lookup import chosen_experiment, chosen_trial, split_names
from ..outcome import command_for, parameter_lines, printed
from ..printing import TerminalBytes, print_line, print_table
from ..verb import WholeNumber, experiment_options, json_option, say, trial_options, verb

_PRINTED = 5  # lines of what a failed trial printed
_CHUNK = 1 << 16
# There is no notification when files on other nodes grow, so they are polled.
_LOOK_EVERY = 0.2
_OUTPUT = re.compile(r"std(out|err)(-\d+)?(-rank\d+)?")


class _TrialGroup(LazyGroup):
    table = {  # noqa: RUF012
        "show": ("trial:show", "Show everything about a trial."),
        "log": ("trial:log", "Print the output of a trial."),
        "add": ("trial:add", "Run a trial with your own parameters."),
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
    "pitchpipe trial show k3x9a2bq 2 --schedule",
)
@trial_options
@click.option("--json", "as_json", is_flag=True, help="Print it in the format of export.")
@click.option("--why", is_flag=True, help="Show only why it ended, compared with others.")
@click.option(
    "--schedule", "as_schedule", is_flag=True, help="Show only its parameters over time (PBT, PB2)."
)
def show(
    names: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    why: bool,
    as_schedule: bool,
) -> None:
    """Show everything about a trial, or only the reason for its end, or with which parameters it was trained when."""
    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        chosen = chosen_trial(view, word)
        number = chosen.sequence_id
        if as_schedule:
            _show_schedule(view, chosen, as_json=as_json)
            return
        reasons = [*_why_lines(view, chosen)] if why else []
        if why and not as_json:
            for line in reasons:
                print_line(line)
            return
        family = view.family(chosen)
        intermediate = [*view.results_of([number]).get(number, {}).values()]
        exported = view.exports(number)
        changes = changes_of_schedule(view.parameter_changes(number))
    if as_json:
        earlier = [{"sequence_id": number, **asdict(attempt)} for attempt in chosen.earlier_attempts]
        more = {"exported": exported, "earlier_attempts": earlier, "why": "\n".join(reasons)}
        shown = trial_object(chosen, intermediate) | {name: value for name, value in more.items() if value}
        click.echo(to_json(shown).decode())
        return
    for line in _lines(folder, chosen, family, intermediate, changes):
        print_line(line)
    for form, path in exported.items():
        click.echo(f"{'exported':13} {form}: {folder.path / path}")
    for line in _attempt_lines(chosen.earlier_attempts):
        print_line(line)


def _show_schedule(view: ExperimentView, trial: TrialDetail, *, as_json: bool) -> None:
    """Print with which parameters a trial was trained when; raise `Failure` where those of no trial have changed."""
    try:
        schedule = view.schedule(trial.sequence_id)
    except NoScheduleError as error:
        raise Failure(str(error)) from error
    changes, results = schedule.changes, schedule.results
    if as_json:
        which = {"id": view.experiment_id, "sequence_id": trial.sequence_id, "trial_id": trial.trial_id}
        click.echo(
            to_json({**which, "results": results, "changes": changes, "steps": schedule.steps}).decode()
        )
        return
    which = f"trial {trial.sequence_id} ({trial.trial_id}) of experiment {view.experiment_id}"
    print_line(f"{which}: {counted(changes, 'change')} of parameters in {counted(results, 'result')}")
    print_table(SCHEDULE_HEADS, schedule_rows(schedule))


def _lines(
    folder: ExperimentFolder,
    trial: TrialDetail,
    family: FamilyRow | None,
    intermediate: list[object],
    changes: str,
) -> Iterator[str]:
    for name, value in _facts(folder, trial, family, intermediate):
        if value not in (None, ""):
            yield f"{name:13} {value}"
    yield "parameters"
    yield from parameter_lines(trial.parameters)
    if changes:
        yield f"  {changes}: --schedule shows all"
    if trial.error:
        yield "error"
        yield from (f"  {line}" for line in trial.error.rstrip().splitlines())


def _facts(
    folder: ExperimentFolder,
    trial: TrialDetail,
    family: FamilyRow | None,
    intermediate: list[object],
) -> Iterator[tuple[str, object]]:
    yield "trial", f"{trial.sequence_id} ({trial.trial_id}) of experiment {folder.experiment_id}"
    yield "status", trial.status
    yield "reason", trial.reason
    yield "kind", trial.kind
    if trial.status == "WAITING":
        from ...manager.control import why_waiting

        yield "waiting", why_waiting(folder, trial.trial_id)
    yield "hint", FailedTrial.of(trial).hint
    yield from facts_of(trial, folder, intermediate)
    yield "family", "" if family is None else _family_text(family)


def _family_text(family: FamilyRow) -> str:
    """Return the trials of a family, and their mean."""
    means = values_text(family, list(family.values)) if family.values else ""
    trials = ", ".join(map(str, family.repeats.trials))
    return f"trials {trials}" + (f"; {repeats_text(family)} {means}" if means else "")


def _attempt_lines(earlier: list[Attempt]) -> Iterator[str]:
    """Yield why earlier attempts ended."""
    if earlier:
        yield "earlier attempts"
    for attempt in earlier:
        agent = attempt.agent and f"agent {attempt.agent}"
        ending = ending_beside(attempt.reason, attempt.exit_code)
        facts = ", ".join(filter(None, (attempt.kind, ending, agent)))
        yield f"  {attempt.attempt}: {attempt.outcome} ({facts}): {attempt.reason}"


def _why_lines(view: ExperimentView, trial: TrialDetail) -> Iterator[str]:
    """Yield why a trial ended as it did, and how it compares with others."""
    from ...manager.control import why_waiting

    ending, number = ending_of(trial, view, why_waiting), trial.sequence_id
    yield f"trial {number} ({trial.trial_id}): {ending.title.lower()}"
    yield from (f"  {sentence}" for sentence in (ending.sentence, *ending.notes))
    if ending.error:
        yield "error"
        yield from (f"  {line}" for line in ending.error.splitlines())
    names = printed(view, number) if trial.status == "FAILED" else []
    for name in () if ending.error else names:
        yield f"the end of its {name}"
        piece = view.trial_log(number, name, Follow(lines=_PRINTED))
        yield from (f"  {line}" for line in piece.text.splitlines())
    if names:
        yield f"all that it printed: {command_for(view.folder, 'trial log', str(number))}"


@verb("log", "pitchpipe trial log 17", "pitchpipe trial log k3x9a2bq 17 --follow")
@trial_options
@click.option("--follow", "-f", is_flag=True, help="Continue until the attempt ends.")
@click.option("--stderr", "only", flag_value="stderr", help="Only what it wrote to stderr.")
@click.option("--stdout", "only", flag_value="stdout", help="Only what it wrote to stdout.")
@click.option("--rank", type=WholeNumber(0), default=0, help="Of several processes, the one with this rank.")
@click.option("--attempt", type=WholeNumber(1), help="The output of this attempt.  [default: the last]")
def log(
    names: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    follow: bool,
    only: str | None,
    rank: int,
    attempt: int | None,
) -> None:
    """Print what a trial printed: its stdout to stdout, its stderr to stderr.

    On a terminal, colours stay and other control characters are escaped; a file or a pipe gets every byte.
    """
    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        chosen, summary = chosen_trial(view, word), view.summary()
        is_function = "trialCommand" not in view.config() and not summary.is_search
    if attempt is not None and attempt > chosen.attempt:
        made = counted(chosen.attempt, "attempt")
        raise Failure(f"trial {chosen.sequence_id} ({chosen.trial_id}) has {made}, not {attempt}", FAILED)
    of_rank = f"-rank{rank}" if rank else ""
    streams = [only] if only else ["stdout", "stderr"]
    trial_id, here = chosen.trial_id, folder.trial(chosen.sequence_id)
    which = f"trial {chosen.sequence_id} ({trial_id})"
    runs = follow or (chosen.status == "RUNNING" and folder.manager() is not None)
    attempts = [attempt or chosen.attempt]
    if attempt is None and not runs:  # the last one may have ended before it printed
        attempts = [*range(chosen.attempt, 0, -1)]
    files = [[f"{output_name(name, number)}{of_rank}" for name in streams] for number in attempts]
    there = [names for names in files if any((here / name).exists() for name in names)]
    wanted = (there or files)[0]
    if not runs and not there:
        if rank and (ranks := _ranks(here)):
            raise Failure(f"{which} has no output of rank {rank}: it has {ranks}", FAILED)
        if not is_function:  # of a function that prints nothing, no file is kept
            raise Failure(f"{which} has no output in {here}{_elsewhere(summary)}", FAILED)
    with ExitStack() as stack:
        tails = [
            stack.enter_context(_Tail(here / name, _stream(name), _asking(folder, trial_id, name)))
            for name in wanted
        ]
        _copy(folder, chosen, tails, follow)
        if not any(tail.copied for tail in tails):
            where = f" to {only}" if only else ""
            click.echo(f"{which} has printed nothing{where}", err=True)


def _elsewhere(summary: Summary) -> str:
    """Return where the output of trials is that another program ran."""
    if summary.status == "VIEWED":  # trials of NNI's experiments stay where they are
        return f"; this is {summary.reason}"
    return "; the program that runs the search prints it" if summary.is_search else ""


def _ranks(here: Path) -> str:
    """Return in words the ranks whose output is in the folder of a trial; empty if there is none."""
    names = (path.name for path in (here.iterdir() if here.is_dir() else ()))
    numbers = {name.partition("-rank")[2] or "0" for name in names if _OUTPUT.fullmatch(name)}
    *others, last = sorted(numbers, key=int) or [""]
    return f"ranks {', '.join(others)} and {last}" if others else last and f"rank {last}"


def _copy(folder: ExperimentFolder, trial: TrialDetail, tails: list[_Tail], follow: bool) -> None:
    while True:
        # Ask before copying, so that all output before the trial's end is copied.
        is_over = not follow or _has_ended(folder, trial)
        for tail in tails:
            tail.copy()
        if is_over:
            return
        time.sleep(_LOOK_EVERY)


def _has_ended(folder: ExperimentFolder, trial: TrialDetail) -> bool:
    """Return whether the attempt that is followed has ended; of the next one there is another file."""
    with ExperimentView(folder) as view:
        now = view.trial(trial.sequence_id)
        is_over = TrialStatus(now.status).is_final or now.attempt > trial.attempt
        return is_over or folder.manager() is None


def _stream(name: str) -> IO[bytes] | TerminalBytes:
    stream = sys.stdout if name.startswith("stdout") else sys.stderr
    return TerminalBytes(stream) if stream.isatty() else stream.buffer


def _asking(folder: ExperimentFolder, trial_id: str, name: str) -> Callable[[int], bytes]:
    """Return a function that reads a running trial's file on its node, from an offset, through the manager."""

    def ask(offset: int) -> bytes:
        from ...manager.control import read_running

        return b"" if folder.manager() is None else read_running(folder.path, trial_id, name, offset)

    return ask


class _Tail:
    """Copies a growing file to a stream; until the file exists here, `elsewhere` reads it where the trial runs."""

    def __init__(
        self, path: Path, output: IO[bytes] | TerminalBytes, elsewhere: Callable[[int], bytes]
    ) -> None:
        self._path = path
        self._output = output
        self._elsewhere = elsewhere
        self._copied_from_elsewhere = 0
        self._file: IO[bytes] | None = None
        self.copied = False

    def __enter__(self) -> _Tail:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def copy(self) -> None:
        if self._file is None:
            try:
                self._file = self._path.open("rb")
                self._file.seek(self._copied_from_elsewhere)
            except FileNotFoundError:
                self._copy_from_elsewhere()
                return
        while data := self._file.read(_CHUNK):
            self._output.write(data)
            self.copied = True
        self._output.flush()

    def _copy_from_elsewhere(self) -> None:
        while data := self._elsewhere(self._copied_from_elsewhere):
            self._output.write(data)
            self._copied_from_elsewhere += len(data)
            self.copied = True
        self._output.flush()


@verb("add", "pitchpipe trial add --parameters '{\"lr\": 0.1}'", "pitchpipe trial add k3x9a2bq --like 17")
@experiment_options
@click.option("--parameters", "text", metavar="JSON", help="The parameters, as a JSON object.")
@click.option("--like", metavar="TRIAL", help="The parameters of another trial: its id or number.")
@json_option
@click.option("--anyway", is_flag=True, help="Accept parameters outside the search space.")
def add(
    experiment: str | None,
    experiment_id: str | None,
    directory: Path | None,
    text: str | None,
    like: str | None,
    anyway: bool,
    as_json: bool,
) -> None:
    """Run a trial with your own parameters, or with those of another trial.

    Parameters outside the search space (a misspelt or missing name, a value out of range) are refused without
    --anyway. The experiment must be running. The trial counts towards max_trial_number.
    """
    from ...manager.control import add_trial, rerun_trial

    parameters = None if text is None else _parameters_in(text)
    folder = chosen_experiment(experiment, experiment_id, directory)
    if parameters is not None and like is None:
        if not anyway:
            _refuse_strange(folder, parameters)
        made = add_trial(folder, parameters)
    elif like is not None and parameters is None:
        made = rerun_trial(folder, int(like) if like.isdecimal() else like)
    else:
        raise Failure("give either --parameters or --like")
    line = f"trial {made['sequence_id']} ({made['trial_id']}) of experiment {folder.experiment_id}"
    say(as_json, {"id": folder.experiment_id, **made}, line)


def _refuse_strange(folder: ExperimentFolder, parameters: Parameters) -> None:
    """Raise `Failure` with all reasons why the parameters are outside the search space."""
    from ...manager import experiment_config, reasons_outside

    if reasons := reasons_outside(experiment_config(folder), [parameters])[0]:
        raise Failure(f"not in the search space: {reasons} (use --anyway to run it regardless)")


def _parameters_in(text: str) -> Parameters:
    try:
        parameters = json.loads(text)
    except ValueError as error:
        raise Failure(f"--parameters is not JSON: {error}") from error
    if not isinstance(parameters, dict):
        raise Failure('--parameters must be a JSON object, such as {"lr": 0.1}')
    return parameters


@verb("kill", "pitchpipe trial kill 17", "pitchpipe trial kill k3x9a2bq Xy3fA")
@trial_options
@json_option
def kill(names: tuple[str, ...], experiment_id: str | None, directory: Path | None, as_json: bool) -> None:
    """Kill a trial; its status becomes USER_CANCELED, and the experiment continues."""
    from ...manager.control import ask_manager

    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        chosen = chosen_trial(view, word)
    which = f"trial {chosen.sequence_id} ({chosen.trial_id})"
    if TrialStatus(chosen.status).is_final:
        raise Failure(f"{which} has ended already: {chosen.status}", FAILED)
    if folder.manager() is None:
        raise Failure(
            f"experiment {folder.experiment_id} is not running: pitchpipe stop ends its remaining trials",
            FAILED,
        )
    ask_manager(folder.path, {"op": "kill", "trial": chosen.trial_id})
    killed = {"sequence_id": chosen.sequence_id, "trial_id": chosen.trial_id}
    say(as_json, {"id": folder.experiment_id, **killed}, f"{which} is being killed")
