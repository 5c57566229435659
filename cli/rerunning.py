"""Reruns a trial in the foreground, with its parameters, environment and code directory but without a manager."""

from __future__ import annotations

import os
import pdb
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..config import ConfigError, ExperimentConfig, parse_source
from ..executors.local import names_of_gpus
from ..manager import run_of
from ..sdk import LineFile, TrialFunction
from ..store import ExperimentFolder
from ..store.reading import TrialDetail, flat
from ..trial_agent import (
    Event,
    FunctionLoader,
    FunctionTrial,
    Job,
    Outbox,
    Report,
    StartError,
    arguments_of,
    base_environment,
    read_spool,
    with_interpreter,
)
from .failures import FAILED, Failure

__all__ = ["Rerun", "changed_parameters", "job_of", "rerun"]


@dataclass(frozen=True, slots=True)
class Rerun:
    """The outcome: the exit code, and the reported results (each as JSON text)."""

    exit_code: int
    intermediate: list[str]
    final: str | None
    error: str | None = None


def changed_parameters(parameters: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return parameters with other values, each given as NAME=VALUE; raise `Failure` if one cannot be changed.

    >>> changed_parameters({"lr": 0.5, "solver": {"_name": "sgd", "momentum": 0.9}}, ["lr=1e-2", "solver.momentum=0"])
    {'lr': 0.01, 'solver': {'_name': 'sgd', 'momentum': 0}}
    """
    changed = deepcopy(dict(parameters))
    for text in changes:
        name, _, written = text.partition("=")
        value = _value(text, written)
        holder, key = _holder(changed, name)
        holder[key] = value
    return changed


def _value(text: str, written: str) -> Any:
    try:
        source = parse_source(written, text)
    except ConfigError:
        source = None
    if source is None or source.problems or source.data is None:
        raise Failure(f"--set {text} is not NAME=VALUE, such as --set lr=0.1")
    return source.data


def _holder(parameters: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """Return the dict that has a parameter, and its key there."""
    for steps in ([name], name.split("."), name.split("/")):
        holder: Any = parameters
        for step in steps[:-1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and steps[-1] in holder:
            break
    else:
        known = ", ".join(key for key in flat(parameters) if not key.endswith("._name"))
        raise Failure(f"--set {name}: the trial has no such parameter; it has {known}")
    if steps[-1] == "_name" or isinstance(holder[steps[-1]], dict):
        raise Failure(
            f"--set {name}: a choice with parameters of its own keeps its option; change these parameters"
        )
    return holder, steps[-1]


def job_of(
    folder: ExperimentFolder, config: ExperimentConfig, trial: TrialDetail, record: str, scratch: Path
) -> Job:
    """Return the trial as one attempt whose files lie in `scratch`; nothing of the experiment is written to."""
    spec = replace(run_of(config, folder), folder=os.path.abspath(scratch))
    assigned = trial.gpus
    gpus = None if assigned is None else names_of_gpus(assigned)
    if assigned is not None and gpus is not None and len(gpus) < len(assigned):
        gpus = None  # hidden in this terminal: the trial gets what is visible here
    return Job(
        trial=trial.trial_id,
        attempt=1,
        sequence_id=trial.sequence_id,
        parameters=record,
        run=spec,
        gpus=gpus,
        budget=trial.budget,
    )


def rerun(job: Job, *, debug: bool = False) -> Rerun:
    """Run the attempt in this terminal; with `debug`, enter pdb where it raises.

    Raise `Failure` if it cannot be started.
    """
    os.makedirs(job.checkpoint_folder)
    Path(job.parameters_file).write_text(job.parameters, encoding="utf-8")
    Path(job.spool).touch()
    if job.run.kind == "command":
        code, error = _run_command(job, debug), None
    else:
        code, error = _call_function(job, debug)
    reported = read_spool(Path(job.spool), job.trial, job.attempt, 0)
    return Rerun(code, _values(reported, "intermediate"), next(iter(_values(reported, "final")), None), error)


def _values(reported: list[Event], kind: str) -> list[str]:
    return [event.value for event in reported if isinstance(event, Report) and event.kind == kind]


def _run_command(job: Job, debug: bool) -> int:
    environment = job.environment(base_environment(os.environ))
    directory = job.run.code_directory or os.getcwd()
    try:
        arguments = arguments_of(job.command, directory, environment, shell=job.run.shell)
    except StartError as error:
        raise Failure(str(error), FAILED) from error
    if debug:
        arguments = _under_pdb(arguments, job.command)
    try:
        process = subprocess.Popen(arguments, cwd=directory, env=environment)
    except OSError as error:
        by_shell = with_interpreter(arguments, error)
        if by_shell is None:
            raise Failure(f"cannot run {arguments[0]}: {error.strerror}", FAILED) from error
        process = subprocess.Popen(by_shell, cwd=directory, env=environment)
    return _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Return the exit code; Ctrl-C also reaches the trial, which may need a moment to finish."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def _under_pdb(arguments: list[str], command: str) -> list[str]:
    """Return a Python command that enters pdb at the first uncaught exception.

    >>> _under_pdb(["/usr/bin/python3", "train.py", "--fast"], "python3 train.py --fast")
    ['/usr/bin/python3', '-m', 'pdb', '-c', 'continue', 'train.py', '--fast']
    """
    program, *words = arguments
    if not os.path.basename(program).startswith("python") or not words or words[0] in ("-c", "-"):
        raise Failure(f"--pdb needs a command of the form `python SCRIPT ...`, not: {command}")
    return [program, "-m", "pdb", "-c", "continue", *words]


def _call_function(job: Job, debug: bool) -> tuple[int, str | None]:
    spool = LineFile(job.spool)
    loader = _DebuggedLoader() if debug else FunctionLoader()
    try:
        ended = FunctionTrial(job, loader, spool, Outbox(), time.time).run()
    finally:
        spool.close()
    return ended.exit_code or 0, ended.error


class _DebuggedLoader(FunctionLoader):
    """Loads the pickled function, wrapped so that it enters pdb where it raises."""

    def load(self, job: Job) -> TrialFunction:
        """Return the function that the attempt calls."""
        return _debugged(super().load(job))


def _debugged(function: TrialFunction) -> TrialFunction:
    def call(parameters: dict[str, Any]) -> Any:
        try:
            return function(parameters)
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            pdb.post_mortem(error.__traceback__)
            raise

    return call
