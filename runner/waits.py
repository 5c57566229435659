"""What an experiment waits for: each wait has a reason, and an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .experiment_state import ExperimentStatus
from .trial import Cause, Trial, TrialStatus

if TYPE_CHECKING:
    from .trial_runner import TrialRunner

_MOST = 100  # trials that are named; the others wait for the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Something that is waited for; `since` is in seconds since the epoch, None where that is not known.

    After `longest` seconds `then` happens, whatever is still missing. Without it there is no bound, and `then` says
    what ends the wait.
    """

    what: str
    then: str
    since: float | None = None
    longest: float | None = None


def waits_of(runner: TrialRunner) -> Iterator[Wait]:
    """Yield what the trials of an experiment wait for; whoever runs them knows more of those that are assigned."""
    if runner.status is ExperimentStatus.TUNER_NO_MORE_TRIAL:
        yield Wait(what="the tuner, which proposes no more trials for now", then="it gets another result")
    for trial in list(runner.live.values())[:_MOST]:
        yield _wait_of(runner, trial)
    if (more := len(runner.live) - _MOST) > 0:
        yield Wait(what=f"{more} more trials", then="they run in their order")


def _wait_of(runner: TrialRunner, trial: Trial) -> Wait:
    name, longest = f"trial {trial.sequence_id}", runner.limits.max_trial_duration
    if trial.verdict is not None and trial.verdict.cause is Cause.PAUSED:
        return Wait(what=f"{name} to save a checkpoint and end", then="it reports its next result")
    if trial.verdict is not None:
        return Wait(what=f"{name} to end", then="it is killed")
    if trial.status is TrialStatus.RUNNING:
        then = "it ends by itself" if longest is None else "it is ended (max_trial_duration)"
        return Wait(what=f"{name} to end", since=trial.start_time, longest=longest, then=then)
    if trial.status is TrialStatus.PAUSED:
        return Wait(what=f"trial {trial.sequence_id}, which is paused", then="the tuner continues or ends it")
    return Wait(
        what=f"{name} to start: {runner.why_waiting(trial)}", since=trial.created, then="it can start"
    )
