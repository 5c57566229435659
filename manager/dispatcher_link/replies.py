"""The replies of the dispatcher: what each means to the runner, and whether a restored dispatcher repeats them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from ...protocol import CommandType, ErrorMessage, Frame, loads
from ...runner import (
    DispatcherFailed,
    Event,
    KillVerdict,
    NoMoreParameters,
    ParametersArrived,
    PauseVerdict,
    ResumeRequested,
)
from ...store import QUEUES, RecordRow, queue_of_reply

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


def failure_of(report: ErrorMessage, now: float) -> DispatcherFailed:
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
    given = {name: reply[name] for name in names if name in reply}
    return ResumeRequested(now, reply["trial_job_id"], **given)


_MEANINGS: dict[CommandType, Callable[[float, str], Event]] = {
    CommandType.NewTrialJob: _parameters,
    CommandType.NoMoreTrialJobs: _no_more,
    CommandType.KillTrialJob: _kill,
    CommandType.Pause: _pause,
    CommandType.Resume: _resume,
}


class Divergence(Exception):
    """A restored dispatcher replied differently; the message says how."""


class Replay:
    """Compares the replies of a restored dispatcher with the recorded ones, which are not recorded twice.

    >>> replay = Replay([(1, "TR", '{"x": 1}'), (2, "KI", '"AbCdE"')])
    >>> replay.last_given("default", 2), replay.last_given("assessor", 2)
    (0, 1)
    """

    def __init__(self, replies: Iterable[RecordRow] = ()) -> None:
        self._expected: dict[str, deque[RecordRow]] = {queue: deque() for queue in QUEUES}
        for record in replies:
            self._expected[queue_of_reply(record[1], record[2])].append(record)

    def is_repeated(self, frame: Frame) -> bool:
        """Return whether this reply is recorded; raise `Divergence` if another one is."""
        if not any(self._expected.values()):
            return False  # nearly always
        code = frame.command.code
        expected = self._expected[queue_of_reply(code, frame.payload)]
        if not expected:
            return False
        _, recorded_code, payload = expected.popleft()
        is_same = code == recorded_code and (
            payload == frame.payload or loads(payload) == loads(frame.payload)
        )
        if not is_same:
            both = enumerate(zip(frame.payload, payload, strict=False))
            place = next((place for place, (now, before) in both if now != before), 0)
            now, before = _around(place, frame.payload), _around(place, payload)
            raise Divergence(f"it replied {now} where it had replied {before}")
        return True

    def last_given(self, queue: str, answered: int) -> int:
        """Return the number of a queue's last reply, after `answered` replies of both queues."""
        expected = self._expected[queue]
        return expected[0][0] - 1 if expected else answered


def _around(place: int, text: str) -> str:
    """Return what of a text is near a place, which may be far into a list of numbers.

    >>> _around(300, "1" * 1000) == "…" + "1" * 180 + "…"
    True
    """
    start, end = max(0, place - 60), place + 120
    return f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"
