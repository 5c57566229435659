"""What a reply of the dispatcher means to the runner: frames in, events out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol import CommandType, Frame, loads
from ...runner import (
    DispatcherFailed,
    Event,
    KillVerdict,
    NoMoreParameters,
    ParametersArrived,
    PauseVerdict,
    ResumeRequested,
)

__all__ = ["REPLIES", "failure_of", "is_reply", "meaning_of"]

REPLIES = (ParametersArrived, NoMoreParameters, KillVerdict, PauseVerdict, ResumeRequested)
"""What replies mean; one event a reply."""


def is_reply(command: CommandType) -> bool:
    """Is this something that the plug-ins said, to be recorded and acted upon?

    >>> is_reply(CommandType.NewTrialJob), is_reply(CommandType.Processed)
    (True, False)
    """
    return command in _MEANINGS


def meaning_of(reply: Frame, now: float) -> Event:
    """The event that a reply is to the runner.

    >>> meaning_of(Frame(CommandType.KillTrialJob, '{"trial_job_id": "AbCdE", "reason": "slow"}'), 1.5)
    KillVerdict(time=1.5, trial_id='AbCdE', reason='slow')
    """
    return _MEANINGS[reply.command](now, reply.payload)


def failure_of(told: dict[str, Any], now: float) -> DispatcherFailed:
    """The event that an Error frame is to the runner."""
    message = f"the {told['plugin']} raised {told['type']}: {told['message']}"
    return DispatcherFailed(
        now,
        message=message,
        where=told.get("where", ""),
        traceback=told.get("traceback", ""),
        command=told.get("command"),
    )


def _parameters(now: float, payload: str) -> Event:
    return ParametersArrived(now, loads(payload).get("parameter_id"), payload)


def _no_more(now: float, _payload: str) -> Event:
    return NoMoreParameters(now)


def _kill(now: float, payload: str) -> Event:
    told = loads(payload)
    if isinstance(told, dict):
        return KillVerdict(now, told["trial_job_id"], told.get("reason", ""))
    return KillVerdict(now, told, "condemned by the assessor")


def _pause(now: float, payload: str) -> Event:
    told = loads(payload)
    return PauseVerdict(now, told["trial_job_id"], told.get("reason", ""))


def _resume(now: float, payload: str) -> Event:
    told = loads(payload)
    names = ("parameters", "checkpoint_of", "budget", "pauses_at_budget")
    return ResumeRequested(now, told["trial_job_id"], **{name: told[name] for name in names if name in told})


_MEANINGS: dict[CommandType, Callable[[float, str], Event]] = {
    CommandType.NewTrialJob: _parameters,
    CommandType.NoMoreTrialJobs: _no_more,
    CommandType.KillTrialJob: _kill,
    CommandType.Pause: _pause,
    CommandType.Resume: _resume,
}
