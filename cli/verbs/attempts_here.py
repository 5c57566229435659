"""Attempts of a trial in this terminal: one from its beginning, or one for each step of its schedule.

As when the trial was first run, an attempt is paused where the parameters change, and the next one continues from its
last checkpoint. There is no agent: a command is watched here, a function is called in this process.
"""

from __future__ import annotations

import json
import os
import pdb
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...protocol import Parameters, counted, with_parameters, with_pause_at_budget
from ...sdk import MachineError
from ...store.reading import ScheduleStep
from ...trial_agent import (
    Event,
    ExitWatch,
    FunctionLoader,
    FunctionTrial,
    Job,
    Outbox,
    ProcessTree,
    Report,
    Saved,
    SpoolReader,
    StartError,
    arguments_of,
    base_environment,
    best_watch,
    mark,
    read_spool,
    start_program,
)
from ..failures import FAILED, Failure

if TYPE_CHECKING:
    from ...sdk import TrialFunction


@dataclass(frozen=True, slots=True)
class Rerun:
    """The outcome of a rerun; each result is JSON text."""

    exit_code: int
    intermediate: list[str]
    final: str | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Ran:
    """What an attempt reported, and how it ended: by itself, or because it was to be paused."""

    exit_code: int
    error: str | None
    was_paused: bool
    events: Sequence[Event]

    @property
    def final(self) -> str | None:
        """The first final result."""
        return next((event.value for event in self._reports("final")), None)

    @property
    def intermediate(self) -> dict[int, str]:
        """The intermediate results by their numbers."""
        return {event.sequence: event.value for event in self._reports("intermediate")}

    def _reports(self, kind: str) -> list[Report]:
        return [event for event in self.events if isinstance(event, Report) and event.kind == kind]

    def checkpoint(self, after: int) -> Saved | None:
        """Return the checkpoint with this many results, else the next one, else the last."""
        saved = [event for event in self.events if isinstance(event, Saved)]
        later = [event for event in saved if event.sequence >= after]
        return min(later, key=lambda event: event.sequence) if later else next(reversed(saved), None)


def run_again(job: Job, *, debug: bool = False) -> Rerun:
    """Run the attempt in this terminal; with `debug`, enter pdb where it raises. Raise `Failure` if it cannot start."""
    ran = _attempt(job, None, debug)
    return Rerun(ran.exit_code, [*ran.intermediate.values()], ran.final, ran.error)


def replay(
    job: Job, steps: Sequence[ScheduleStep], tell: Callable[[str], None], *, debug: bool = False
) -> Rerun:
    """Run the attempt of each step from the checkpoint of the one before, and `tell` what begins; as `run_again`.

    The parameters change after as many results as in the schedule, or, if the trial saves no checkpoint then, at the
    next checkpoint. A trial that ends by itself before is not continued.
    """
    if job.budget is not None:  # of the trial's own results; what it copied may have had more
        job = replace(job, budget=job.budget + steps[-1].begin - steps[-1].first)
    results, begin, checkpoint = dict[int, str](), 0, None
    for attempt, step in enumerate(steps, start=1):
        end = steps[attempt].begin if attempt < len(steps) else None
        if end is not None and begin >= end:
            continue  # it was already past this step when it saved a checkpoint
        tell(f"after {counted(begin, 'result')}: {json.dumps(step.parameters)}")
        record = with_pause_at_budget(with_parameters(job.parameters, step.parameters), end is not None)
        part = replace(
            job,
            attempt=attempt,
            parameters=record,
            first_sequence=begin,
            checkpoint=checkpoint,
            budget=job.budget if end is None else float(end),
        )
        ran = _attempt(part, end, debug)
        results |= ran.intermediate
        if end is None or ran.exit_code or _is_complete(ran, end):
            return Rerun(ran.exit_code, [*results.values()], ran.final, ran.error)
        saved = ran.checkpoint(end)
        if saved is None:
            error = f"it saved no checkpoint after {end} results, where its parameters change"
            return Rerun(1, [*results.values()], None, error)
        checkpoint = os.path.join(job.checkpoint_folder, saved.name)
        # A script that obeys its budget may report less often than it counts.
        begin = saved.sequence if ran.was_paused else end
        if begin != end:
            tell(f"its checkpoint is that after {begin} results, not {end}")
        results = {number: value for number, value in results.items() if number < begin}
    raise ValueError("a schedule without steps")


def _is_complete(ran: _Ran, end: int) -> bool:
    """Return whether an attempt that was to be paused after `end` results had ended before."""
    return not ran.was_paused and bool(ran.intermediate) and max(ran.intermediate) + 1 < end


def _attempt(job: Job, end: int | None, debug: bool) -> _Ran:
    """Run an attempt; pause it after `end` results."""
    os.makedirs(job.checkpoint_folder, exist_ok=True)
    Path(job.parameters_file).write_text(job.parameters, encoding="utf-8")
    Path(job.spool).touch()
    if job.run.kind == "command":
        (code, was_paused), error = _run_command(job, end, debug), None
    else:
        code, error, was_paused = _call_function(job, end, debug)
    events = read_spool(Path(job.spool), job.trial, job.attempt, job.first_sequence)
    return _Ran(code, error, was_paused, events)


def _run_command(job: Job, end: int | None, debug: bool) -> tuple[int, bool]:
    environment = job.environment(base_environment(os.environ))
    directory = job.run.code_directory or os.getcwd()
    try:
        arguments = arguments_of(job.command, directory, environment, shell=job.run.shell)
        if debug:
            arguments = _under_pdb(arguments, job.command)
        process = start_program(arguments, cwd=directory, env=environment)
    except (StartError, MachineError) as error:
        raise Failure(str(error), FAILED) from error
    if end is None or not _reaches(process, job, end):
        return _wait(process), False
    tree = ProcessTree(None, mark(job.spool))
    tree.signal_orphans(signal.SIGTERM)
    tree.kill(time.monotonic() + job.run.grace)
    _wait(process)
    return 0, True


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code; Ctrl-C also reaches the trial, which may need a moment to finish."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _reaches(process: subprocess.Popen[bytes], job: Job, end: int) -> bool:
    """Wait until a command has saved a checkpoint after `end` results, or reported more; False if it ends before."""
    reader = SpoolReader(trial=job.trial, attempt=job.attempt, first_sequence=job.first_sequence)
    with closing(best_watch()) as watch, open(job.spool, "rb") as spool, ExitWatch(process) as ended:
        watch.watch(job.spool)
        poll = select.poll()
        for descriptor in filter(None, (ended.descriptor, watch.descriptor)):
            poll.register(descriptor, select.POLLIN)
        while not any(_is_past(event, end) for event in reader.feed(spool.read())):
            try:
                ready = {descriptor for descriptor, _ in poll.poll(watch.interval and watch.interval * 1000)}
            except KeyboardInterrupt:
                continue  # the trial has it, too
            if ended.descriptor in ready:
                return any(_is_past(event, end) for event in reader.feed(spool.read()))
            watch.clear()
    return True


def _is_past(event: Event, end: int) -> bool:
    """Return whether a trial has made `end` results and a checkpoint, or, if it makes none there, another result."""
    if isinstance(event, Report):
        return event.kind == "intermediate" and event.sequence >= end
    return isinstance(event, Saved) and event.sequence >= end


def _under_pdb(arguments: list[str], command: str) -> list[str]:
    """Return a Python command that enters pdb at the first uncaught exception.

    >>> _under_pdb(["/usr/bin/python3", "train.py", "--fast"], "python3 train.py --fast")
    ['/usr/bin/python3', '-m', 'pdb', '-c', 'continue', 'train.py', '--fast']
    """
    program, *words = arguments
    if not os.path.basename(program).startswith("python") or not words or words[0] in ("-c", "-"):
        raise Failure(f"--pdb needs a command of the form `python SCRIPT ...`, not: {command}")
    return [program, "-m", "pdb", "-c", "continue", *words]


def _call_function(job: Job, end: int | None, debug: bool) -> tuple[int, str | None, bool]:
    from ...sdk import LineFile

    spool, outbox = LineFile(job.spool), _PausingOutbox(end)
    trial = FunctionTrial(job, _DebuggedLoader() if debug else FunctionLoader(), spool, outbox, time.time)
    outbox.pause = partial(trial.pause, 0.0)
    try:
        ended = trial.run()
    finally:
        spool.close()
    return ended.exit_code or 0, ended.error, ended.paused


class _PausingOutbox(Outbox):
    """Calls `pause` when a function reports the last of `end` results."""

    def __init__(self, end: int | None) -> None:
        super().__init__()
        self.pause: Callable[[], None] = lambda: None
        self._end = end

    def put(self, event: Event, *, urgent: bool = True) -> int:
        """Take an event."""
        if self._end is not None and _is_past(event, self._end - 1) and isinstance(event, Report):
            self.pause()
        return super().put(event, urgent=urgent)


class _DebuggedLoader(FunctionLoader):
    """Loads the pickled function, wrapped so that it enters pdb where it raises."""

    def load(self, job: Job) -> TrialFunction:
        """Return the function that the attempt calls."""
        return _debugged(super().load(job))


def _debugged(function: TrialFunction) -> TrialFunction:
    def call(parameters: Parameters) -> Any:
        try:
            return function(parameters)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            pdb.post_mortem(error.__traceback__)
            raise

    return call
