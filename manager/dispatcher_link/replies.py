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

REPLIES = (ParametersArrived, NoMoreParameters, KillVerdict, PauseVerdict, ResumeRequested)
"""The events that replies become; one reply is one event."""


def is_reply(command: CommandType) -> bool:
    """Return whether a frame of this type is a reply of the plug-ins, to be recorded.

    >>> is_reply(CommandType.NewTrialJob), is_reply(CommandType.Processed)
    (True, False)
    """
    return command in _MEANINGS


def meaning_of(number: int, reply: Frame, now: float) -> Event:
    """Return what reply `number` means.

    >>> meaning_of(7, Frame(CommandType.KillTrialJob, '{"trial_job_id": "AbCdE", "reason": "slow"}'), 1.5)
    KillVerdict(time=1.5, trial_id='AbCdE', reason='slow')
    """
    event = _MEANINGS[reply.command](now, reply.payload)
    event.cause = f"dispatcher reply {number}"
    return event


def failure_of(report: dict[str, Any], now: float) -> DispatcherFailed:
    """Return what an Error frame means."""
    return DispatcherFailed(
        now,
        message=f"the {report['plugin']} raised {report['type']}: {report['message']}",
        where=report.get("where", ""),
        traceback=report.get("traceback", ""),
        command=report.get("command"),
        cause="dispatcher",
    )


def _parameters(now: float, payload: str) -> Event:
    return ParametersArrived(now, loads(payload).get("parameter_id"), payload)


def _no_more(now: float, payload: str) -> Event:
    record = loads(payload)
    return NoMoreParameters(now, record.get("reason", "") if isinstance(record, dict) else "")


def _kill(now: float, payload: str) -> Event:
    reply = loads(payload)
    if isinstance(reply, dict):
        return KillVerdict(now, reply["trial_job_id"], reply.get("reason", ""))
    return KillVerdict(now, reply, "stopped by the assessor")


def _pause(now: float, payload: str) -> Event:
    reply = loads(payload)
    return PauseVerdict(now, reply["trial_job_id"], reply.get("reason", ""))


def _resume(now: float, payload: str) -> Event:
    reply = loads(payload)
    names = ("parameters", "checkpoint_of", "budget", "pauses_at_budget")
    return ResumeRequested(
        now, reply["trial_job_id"], **{name: reply[name] for name in names if name in reply}
    )


_MEANINGS: dict[CommandType, Callable[[float, str], Event]] = {
    CommandType.NewTrialJob: _parameters,
    CommandType.NoMoreTrialJobs: _no_more,
    CommandType.KillTrialJob: _kill,
    CommandType.Pause: _pause,
    CommandType.Resume: _resume,
}
