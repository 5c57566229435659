"""What an experiment waits for: each wait has a reason, and an end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from .experiment_state import ExperimentStatus
from .trial import Cause, Trial, TrialStatus

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


def waits_of(
    status: ExperimentStatus,
    live: Collection[Trial],
    longest: float | None,
    why_waiting: Callable[[Trial], str],
) -> Iterator[Wait]:
    """Yield what the `live` trials of an experiment wait for; one runs for at most `longest` seconds.

    Whoever runs them knows more of those that are assigned.
    """
    if status is ExperimentStatus.TUNER_NO_MORE_TRIAL:
        yield Wait(what="the tuner, which proposes no more trials for now", then="it gets another result")
    for trial in islice(live, _MOST):
        yield _wait_of(trial, longest, why_waiting)
    if (more := len(live) - _MOST) > 0:
        yield Wait(what=f"{more} more trials", then="they run in their order")


def _wait_of(trial: Trial, longest: float | None, why_waiting: Callable[[Trial], str]) -> Wait:
    name = f"trial {trial.sequence_id}"
    if trial.verdict is not None and trial.verdict.cause is Cause.PAUSED:
        return Wait(what=f"{name} to save a checkpoint and end", then="it reports its next result")
    if trial.verdict is not None:
        return Wait(what=f"{name} to end", then="it is killed")
    if trial.status is TrialStatus.RUNNING:
        then = "it ends by itself" if longest is None else "it is ended (max_trial_duration)"
        return Wait(what=f"{name} to end", since=trial.start_time, longest=longest, then=then)
    if trial.status is TrialStatus.PAUSED:
        return Wait(what=f"{name}, which is paused", then="the tuner continues or ends it")
    return Wait(what=f"{name} to start: {why_waiting(trial)}", since=trial.created, then="it can start")
