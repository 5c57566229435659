"""`pitchpipe trial rerun`: one trial again, in this terminal."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...runner import Verdict, check_final
from ...store.reading import ExperimentView, ending_text, result_text
from ..failures import FAILED, Failure
from ..lookup import chosen_trial, split_names
from ..outcome import command_for
from ..verb import json_option, say, trial_options, verb

if TYPE_CHECKING:
    from ..rerunning import Rerun

__all__ = ["rerun"]

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
    checkpoint. --set changes a parameter; a nested one is named with dots. The
    experiment need not be running and is not changed: the trial's own folder is a temporary one.
    Exit code: 0, or 1 if the trial fails.
    """
    from ...manager import experiment_config
    from ..rerunning import changed_parameters, job_of
    from ..rerunning import rerun as run_again

    folder, word = split_names(names, experiment_id, directory)
    with ExperimentView(folder) as view:
        if folder.is_search(view.config()):
            raise Failure(
                f"the trials of {folder.path} are run by a program that asks and tells: only that program can run"
                f" one again, with the parameters that {command_for(folder, 'trial show', word)} prints"
            )
        found = chosen_trial(view, word)
        record = view.record(found.sequence_id)
        metrics = view.metric_names()
    config = experiment_config(folder, to_change=False)
    if changes:
        found = replace(found, parameters=changed_parameters(found.parameters, changes))
        record = json.dumps({**json.loads(record), "parameters": found.parameters})
    which = f"trial {found.sequence_id} ({found.trial_id})"
    click.echo(f"{which} of experiment {folder.experiment_id}", err=True)
    click.echo(f"parameters {json.dumps(found.parameters)}", err=True)
    with (
        tempfile.TemporaryDirectory(prefix="pitchpipe-rerun-") as scratch,
        _printing_to_stderr() if as_json else nullcontext(),
    ):
        again = run_again(job_of(folder, config, found, record, Path(scratch)), debug=debug)
    problem = _problem(again, metrics)
    for line in _outcome(found.final, again, problem):
        click.echo(line, err=True)
    if as_json:
        reported = _reported(again, problem)
        say(as_json, {"id": folder.experiment_id, "sequence_id": found.sequence_id, **reported})
    return FAILED if again.exit_code or problem else 0


@contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """Lead what this process and the trial write to stdout to stderr: stdout is for the JSON object."""
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
    """Return why an experiment would not accept the results; empty if it would."""
    if again.final is None:
        return "reported no final result"
    verdict = check_final(again.final, metrics)
    return verdict.reason if isinstance(verdict, Verdict) else ""


def _reported(again: Rerun, problem: str) -> dict[str, Any]:
    return {
        "exit_code": again.exit_code,
        "error": again.error or problem or None,
        "intermediate": [json.loads(value) for value in again.intermediate],
        "final": None if again.final is None else json.loads(again.final),
    }


def _outcome(final: Any, again: Rerun, problem: str) -> Iterator[str]:
    if again.error:
        yield from again.error.rstrip().splitlines()
    if again.exit_code:
        yield f"it ended with {ending_text(again.exit_code)}"
    values = [result_text(json.loads(value)) for value in again.intermediate]
    if values:
        counted = "1 intermediate result" if len(values) == 1 else f"{len(values)} intermediate results"
        yield f"{counted}: {'… ' if len(values) > _SHOWN else ''}{', '.join(values[-_SHOWN:])}"
    if again.final is not None:
        before = "none" if final is None else result_text(final)
        yield f"final result: {result_text(json.loads(again.final))} (in the experiment: {before})"
    if problem:
        yield f"it {problem}" if again.exit_code else f"it failed: it {problem}"
