"""`pitchpipe trial rerun`: one trial again, in this terminal.

It gets its parameters, environment and code directory, but runs without a manager, and nothing of its experiment is
changed.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...protocol import Json, Parameters, counted, schedule_of
from ...runner import Verdict, check_final
from ...store.reading import ExperimentView, ScheduleStep, flat
from ...telling import ending_text, result_text
from ...trial_agent import Job
from ..failures import FAILED, Failure
from ..lookup import chosen_trial, split_names
from ..outcome import command_for
from ..verb import json_option, say, trial_options, verb
from .attempts_here import Rerun, replay, run_again

if TYPE_CHECKING:
    from ...config import ExperimentConfig
    from ...store import ExperimentFolder
    from ...store.reading import TrialDetail

_SHOWN = 10


@verb(
    "rerun",
    "pitchpipe trial rerun 17",
    "pitchpipe trial rerun k3x9a2bq 17 --pdb",
    "pitchpipe trial rerun 17 --set lr=0.1",
)
@trial_options
@json_option
@click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another value of a parameter. Repeatable."
)
@click.option("--pdb", "debug", is_flag=True, help="Enter the debugger where the trial raises.")
def rerun(
    names: tuple[str, ...],
    experiment_id: str | None,
    directory: Path | None,
    as_json: bool,
    changes: tuple[str, ...],
    debug: bool,
) -> int:
    """Run a trial again in this terminal, to see why it failed or to reproduce its result.

    It gets the same parameters, environment, code directory and GPUs, and starts from the beginning, not from a
    checkpoint. If its parameters changed while it trained (PBT, PB2), they change again, after as many results.
    --set changes a parameter; a nested one is named with dots. The experiment need not be running and is not
    changed: the trial's own folder is a temporary one.
    Exit code: 0, or 1 if the trial fails.
    """
    from ...manager import experiment_config

    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        if folder.is_search(view.config()):
            raise Failure(
                f"the trials of {folder.path} are run by a program that asks and tells: only that program can run"
                f" one again, with the parameters that {command_for(folder, 'trial show', word)} prints"
            )
        chosen = chosen_trial(view, word)
        record = view.record(chosen.sequence_id)
        steps = _steps_of(view, record, chosen.sequence_id, changes)
        metrics = view.metric_names()
    config = experiment_config(folder, to_change=False)
    if changes:
        chosen = replace(chosen, parameters=changed_parameters(chosen.parameters, changes))
        record = json.dumps({**json.loads(record), "parameters": chosen.parameters})
    which = f"trial {chosen.sequence_id} ({chosen.trial_id})"
    say_here = partial(click.echo, err=True)
    say_here(f"{which} of experiment {folder.experiment_id}")
    count = counted(len(steps), "step")
    say_here(f"a schedule of {count}" if steps else f"parameters {json.dumps(chosen.parameters)}")
    with (
        tempfile.TemporaryDirectory(prefix="pitchpipe-rerun-") as scratch,
        _printing_to_stderr() if as_json else nullcontext(),
    ):
        job = _job_of(folder, config, chosen, record, Path(scratch))
        again = replay(job, steps, say_here, debug=debug) if steps else run_again(job, debug=debug)
    problem = _problem(again, metrics)
    for line in _outcome(chosen.final, again, problem):
        click.echo(line, err=True)
    if as_json:
        ran = {"id": folder.experiment_id, "sequence_id": chosen.sequence_id}
        say(as_json, {**ran, **_rerun_object(again, problem)})
    return FAILED if again.exit_code or problem else 0


def _steps_of(
    view: ExperimentView, record: str, number: int, changes: Sequence[str]
) -> Sequence[ScheduleStep]:
    """Return the steps of a trial's schedule with the `changes` in each, none if its parameters never changed."""
    steps = view.schedule(number).steps if schedule_of(record) else ()
    return [replace(step, parameters=changed_parameters(step.parameters, changes)) for step in steps]


@contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """Redirect stdout of this process and of the trial to stderr: stdout is for the JSON object."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _problem(again: Rerun, metrics: Sequence[str]) -> str:
    """Return why an experiment would refuse the results; empty if it would accept them."""
    if again.final is None:
        return "reported no final result"
    verdict = check_final(again.final, metrics)
    return verdict.reason if isinstance(verdict, Verdict) else ""


def _rerun_object(again: Rerun, problem: str) -> Mapping[str, object]:
    return {
        "exit_code": again.exit_code,
        "error": again.error or problem or None,
        "intermediate": [json.loads(value) for value in again.intermediate],
        "final": None if again.final is None else json.loads(again.final),
    }


def _outcome(final: Json, again: Rerun, problem: str) -> Iterator[str]:
    if again.error:
        yield from again.error.rstrip().splitlines()
    if again.exit_code:
        yield f"it ended with {ending_text(again.exit_code)}"
    values = [result_text(json.loads(value)) for value in again.intermediate]
    if values:
        last = ("… " if len(values) > _SHOWN else "") + ", ".join(values[-_SHOWN:])
        yield f"{counted(len(values), 'intermediate result')}: {last}"
    if again.final is not None:
        before = "none" if final is None else result_text(final)
        yield f"final result: {result_text(json.loads(again.final))} (in the experiment: {before})"
    if problem:
        yield f"it {problem}" if again.exit_code else f"it failed: it {problem}"


def changed_parameters(parameters: Mapping[str, Json], changes: Sequence[str]) -> Parameters:
    """Return the parameters with `changes`, each NAME=VALUE; raise `Failure` if one cannot be changed.

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


def _value(text: str, written: str) -> Json:
    from ...config import ConfigError, parse_source

    try:
        source = parse_source(written, text)
    except ConfigError:
        source = None
    if source is None or source.problems or source.data is None:
        raise Failure(f"--set {text} is not NAME=VALUE, such as --set lr=0.1")
    return source.data


def _holder(parameters: Parameters, name: str) -> tuple[Parameters, str]:
    """Return the dict that has a parameter, and its key there."""
    for steps in ([name], name.split("."), name.split("/")):
        holder: Json = parameters
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


def _job_of(
    folder: ExperimentFolder, config: ExperimentConfig, trial: TrialDetail, record: str, scratch: Path
) -> Job:
    """Return the trial as one attempt whose files lie in `scratch`."""
    from ...executors.local import names_of_gpus
    from ...manager import run_of

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
