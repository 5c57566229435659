"""From one attempt of a trial to the next: where it begins, and what no longer counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict

from ..protocol import (
    Parameters,
    RecordedStep,
    loads,
    parameters_of,
    pauses_at_budget,
    schedule_of,
    with_parameters,
    with_pause_at_budget,
    with_schedule,
)
from .events import CheckpointSaved, ResumeRequested
from .trial import Cause, FailureKind, Trial, Verdict

_NOT_BY_CHECKPOINT = (FailureKind.INFRA, FailureKind.OOM, FailureKind.TIMEOUT, FailureKind.KILLED)


class PendingResume(TypedDict, total=False):
    """What a resume changes in a trial, as it is kept until the trial is paused."""

    parameters: Parameters
    checkpoint_of: str
    budget: float
    pauses_at_budget: bool


def start_from(trial: Trial, donor: Trial | None) -> None:
    """Let the first attempt of a new trial start from the checkpoint of another one, if it is to and there is one."""
    if _copies(trial, donor):
        _note_step(trial, [], trial.checkpoint_sequence, donor)


def _copies(trial: Trial, donor: Trial | None) -> bool:
    """Let the next attempt start from a copy of another trial's checkpoint, if there is one; return whether it does.

    Its results continue with the next number, those of a trial without results with the number of the other one.
    """
    if donor is None or donor is trial or donor.checkpoint is None:
        return False
    if trial.next_sequence == 0:
        trial.next_sequence = trial.first_sequence = donor.checkpoint_sequence
    trial.copy_of = donor.checkpoint
    trial.checkpoint = f"{_folder(trial)}/{trial.attempt + 1}-0"
    trial.checkpoint_sequence = trial.next_sequence
    return True


def _steps_of(trial: Trial) -> list[RecordedStep]:
    """Return the steps of a trial so far: one while its parameters have not changed."""
    return schedule_of(trial.record) or [{"first": 0, "parameters": parameters_of(trial.record)}]


def _note_step(trial: Trial, past: Sequence[RecordedStep], first: int, donor: Trial | None = None) -> None:
    """Record after the `past` steps what the trial continues with, from its result number `first` on.

    The record has the step before the attempt begins, and keeps it: other trials may have copied what is trained then.
    """
    step: RecordedStep = {"first": first, "parameters": parameters_of(trial.record)}
    if donor is not None:
        step["copied_from"] = donor.sequence_id
        step["copied_at"] = donor.checkpoint_sequence or first
        step["copied_steps"] = len(_steps_of(donor))
    trial.record = with_schedule(trial.record, [*past, step])


def rewind(trial: Trial) -> tuple[int, int, int] | None:
    """Set the trial back to its checkpoint, or to its beginning, for its next attempt.

    Return (sequence id, last attempt, sequence) of the results that no longer count, or None if all do.
    """
    first = trial.checkpoint_sequence if trial.checkpoint is not None else 0
    lost = trial.next_sequence > first or trial.finals > 0
    trial.first_sequence = trial.next_sequence = first
    trial.finals, trial.final, trial.values = 0, None, None
    trial.start_time = trial.pid = trial.exit_code = trial.error = trial.kind = None
    return (trial.sequence_id, trial.attempt, first) if lost else None


def came_to_nothing(trial: Trial, verdict: Verdict) -> bool:
    """Return whether an attempt failed by itself before it reported or saved anything after its checkpoint.

    Then it may have failed because of that checkpoint, unless it was out of time or memory, or killed.
    """
    if (
        trial.checkpoint is None
        or verdict.kind in _NOT_BY_CHECKPOINT
        or trial.next_sequence > trial.first_sequence
    ):
        return False
    attempt, _, number = trial.checkpoint.rpartition("/")[2].partition("-")
    return int(attempt) < trial.attempt or number == "0"


def count_failure(trial: Trial, verdict: Verdict) -> None:
    """Count a failed attempt under its kind of failure."""
    if verdict.cause is Cause.ENDED_BADLY and verdict.kind is not None:
        trial.failed = {**trial.failed, verdict.kind.value: trial.failed.get(verdict.kind, 0) + 1}


def forget_checkpoint(trial: Trial) -> None:
    """Let the next attempt begin from the start, with the present parameters."""
    trial.checkpoint, trial.checkpoint_sequence = None, 0
    if past := schedule_of(trial.record):
        _note_step(trial, past, 0)


def retry_ended(trial: Trial, from_checkpoint: bool) -> None:
    """Reset a failed or cancelled trial so that it can run again; its past attempts stay."""
    trial.user_retries += 1
    trial.failed = {}
    trial.end_time = None
    leave_rung(trial)  # the tuner no longer waits for it
    if not from_checkpoint:
        forget_checkpoint(trial)


def note_checkpoint(trial: Trial, saved: CheckpointSaved) -> None:
    """Let the next attempt start from a new checkpoint; an older one, reported twice, changes nothing."""
    if trial.checkpoint is None or saved.sequence >= trial.checkpoint_sequence:
        trial.checkpoint = f"{_folder(trial)}/{saved.name}"
        trial.checkpoint_sequence = saved.sequence


def resume_text(requested: ResumeRequested) -> str:
    """Return a `PendingResume` as JSON."""
    resume = {
        "parameters": requested.parameters,
        "checkpoint_of": requested.checkpoint_of,
        "budget": requested.budget,
        "pauses_at_budget": requested.pauses_at_budget or None,
    }
    return json.dumps({name: value for name, value in resume.items() if value is not None})


def exploit(trial: Trial, resume: PendingResume, donor: Trial | None) -> None:
    """Apply a resume to a paused trial: new parameters, a budget, the checkpoint of another trial."""
    before = parameters_of(trial.record)
    past = _steps_of(trial) if trial.attempt else []
    # A trial that reports only final results has trained for its budget.
    spent = int(trial.budget or 0) if trial.attempt and trial.next_sequence == 0 else 0
    if "parameters" in resume:
        trial.record = with_parameters(trial.record, resume["parameters"])
    if "budget" in resume:
        trial.budget = resume["budget"]
        leave_rung(trial)
    if resume.get("pauses_at_budget"):
        trial.record = with_pause_at_budget(trial.record, True)
    is_copy = _copies(trial, donor)
    if is_copy or parameters_of(trial.record) != before:
        first = 0 if trial.checkpoint is None else trial.checkpoint_sequence or spent
        _note_step(trial, past, first, donor if is_copy else None)


def ends_rung(trial: Trial, final: str) -> bool:
    """Return whether a final result only means that the trial has spent a budget at which the tuner pauses it.

    A trial that ends earlier or reports a true `done` is complete. If it reported no intermediate results, its final
    result spends the budget.
    """
    if trial.budget is None or not pauses_at_budget(trial.record):
        return False
    if 0 < trial.next_sequence < trial.budget:
        return False
    result = loads(final)
    return not (isinstance(result, dict) and result.get("done") is True)


def leave_rung(trial: Trial) -> None:
    """Let the trial end, instead of pausing, when it has spent its budget."""
    if pauses_at_budget(trial.record):
        trial.record = with_pause_at_budget(trial.record, False)


def _folder(trial: Trial) -> str:
    return f"trials/{trial.sequence_id}/checkpoints"
