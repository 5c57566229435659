"""From one attempt of a trial to the next: where it begins, what no longer counts, what is written down. All pure."""

from __future__ import annotations

import json
from typing import Any

from ..protocol import loads
from .changes import AttemptRow
from .events import CheckpointSaved, ResumeAsked
from .trial import FailureKind, Trial, Verdict

__all__ = [
    "asked_resume",
    "came_to_nothing",
    "ended_attempt",
    "ends_rung",
    "exchange",
    "forget_checkpoint",
    "leave_rung",
    "note_checkpoint",
    "revive",
    "rewind",
    "start_from",
    "wishes_of",
]

_PAUSES = "pauses_at_budget"


def ended_attempt(trial: Trial, outcome: str, verdict: Verdict, time: float) -> AttemptRow:
    """What is kept of an attempt that is not the trial's last; `outcome` is what happens next."""
    return AttemptRow(
        trial.sequence_id,
        trial.attempt,
        outcome,
        trial.agent,
        trial.start_time,
        time,
        verdict.reason,
        verdict.kind,
        trial.exit_code,
        trial.error,
    )


def wishes_of(record: str) -> tuple[float | None, str | None]:
    """The budget that a parameter record asks for, and the trial from whose checkpoint it wants to start.

    >>> wishes_of('{"parameters": {"x": 1}, "budget": 9, "checkpoint_of": "AbCdE"}')
    (9.0, 'AbCdE')
    """
    if '"budget"' not in record and '"checkpoint_of"' not in record:
        return None, None  # nearly always: the record need not be parsed
    wishes = json.loads(record)
    budget = wishes.get("budget")
    return float(budget) if isinstance(budget, int | float) else None, wishes.get("checkpoint_of")


def start_from(trial: Trial, donor: Trial | None) -> None:
    """Let the next attempt start from the checkpoint of another trial; its results go on with the next number.

    A trial without results goes on where the other one was.
    """
    if donor is not None and donor is not trial and donor.checkpoint is not None:
        if trial.next_sequence == 0:
            trial.next_sequence = trial.first_sequence = donor.checkpoint_sequence
        trial.copy_of = donor.checkpoint
        trial.checkpoint = f"{_folder(trial)}/{trial.attempt + 1}-0"
        trial.checkpoint_sequence = trial.next_sequence


def rewind(trial: Trial) -> tuple[int, int, int] | None:
    """Set the trial back to its checkpoint, or to its beginning, for its next attempt.

    Answers (sequence id, last attempt, sequence) of the results that do not count any more, if there are any.
    """
    first = trial.checkpoint_sequence if trial.checkpoint is not None else 0
    lost = trial.next_sequence > first or trial.finals > 0
    trial.first_sequence = trial.next_sequence = first
    trial.finals, trial.final, trial.values = 0, None, None
    trial.start_time = trial.pid = trial.exit_code = trial.error = trial.kind = None
    return (trial.sequence_id, trial.attempt, first) if lost else None


def came_to_nothing(trial: Trial, verdict: Verdict) -> bool:
    """Did an attempt that went on from a checkpoint fail of itself before it reported or saved anything?

    Then the checkpoint may be what it failed at.
    """
    if (
        trial.checkpoint is None
        or verdict.kind is FailureKind.INFRA
        or trial.next_sequence > trial.first_sequence
    ):
        return False
    attempt, _, number = trial.checkpoint.rpartition("/")[2].partition("-")
    return int(attempt) < trial.attempt or number == "0"


def forget_checkpoint(trial: Trial) -> None:
    """Let the next attempt begin from the start."""
    trial.checkpoint, trial.checkpoint_sequence = None, 0


def revive(trial: Trial, from_checkpoint: bool) -> None:
    """Let a failed trial be as one that never failed, its past attempts aside."""
    trial.revivals += 1
    trial.failed = {}
    trial.end_time = None
    leave_rung(trial)  # the tuner does not wait for it any more
    if not from_checkpoint:
        forget_checkpoint(trial)


def note_checkpoint(trial: Trial, saved: CheckpointSaved) -> None:
    """Let the next attempt start from a new checkpoint; an older one, told again after a restart, changes nothing."""
    if trial.checkpoint is None or saved.sequence >= trial.checkpoint_sequence:
        trial.checkpoint = f"{_folder(trial)}/{saved.name}"
        trial.checkpoint_sequence = saved.sequence


def asked_resume(asked: ResumeAsked) -> str:
    """A resume as JSON, until the pause is there."""
    resume = {
        "parameters": asked.parameters,
        "checkpoint_of": asked.checkpoint_of,
        "budget": asked.budget,
        "pauses_at_budget": asked.pauses_at_budget or None,
    }
    return json.dumps({name: value for name, value in resume.items() if value is not None})


def exchange(trial: Trial, resume: dict[str, Any], donor: Trial | None) -> None:
    """Give a paused trial what its resume brings: parameters, a budget, the checkpoint of another trial.

    The checkpoint becomes its own, and its results go on with the next number.
    """
    if "parameters" in resume:
        record = {**json.loads(trial.record), "parameters": resume["parameters"]}
        trial.record = json.dumps(record)
    if "budget" in resume:
        trial.budget = resume["budget"]
        leave_rung(trial)
    if resume.get("pauses_at_budget"):
        trial.record = json.dumps({**json.loads(trial.record), _PAUSES: True})
    start_from(trial, donor)


def ends_rung(trial: Trial, final: str) -> bool:
    """Return whether a final result only says that the trial has spent a budget at which the tuner pauses it.

    A trial that ends before, or that reports a true `done`, has done all it can. One that reports nothing but final
    results has spent its budget.
    """
    if trial.budget is None or not _pauses(trial.record):
        return False
    if 0 < trial.next_sequence < trial.budget:
        return False
    result = loads(final)
    return not (isinstance(result, dict) and result.get("done") is True)


def leave_rung(trial: Trial) -> None:
    """Let the trial end where it has spent its budget."""
    if _pauses(trial.record):
        record = json.loads(trial.record)
        del record[_PAUSES]
        trial.record = json.dumps(record)


def _pauses(record: str) -> bool:
    return f'"{_PAUSES}"' in record and json.loads(record).get(_PAUSES) is True


def _folder(trial: Trial) -> str:
    return f"trials/{trial.sequence_id}/checkpoints"
