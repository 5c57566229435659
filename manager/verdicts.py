"""Judgements: is a reported value a result, how did an attempt end, do failures repeat themselves? All pure."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Sequence

from ..protocol import MetricError, loads, metric_value
from .events import AttemptEnded
from .trial import Cause, FailureKind, Trial, Verdict

__all__ = ["FailureStreak", "check_final", "check_intermediate", "judge_end"]


def check_intermediate(value: str) -> Verdict | None:
    """The verdict on an unusable intermediate result; None for a usable one (NaN is left to the assessor)."""
    try:
        float(value)
        return None  # the usual case, a bare number, without the way through JSON
    except ValueError:
        pass
    try:
        metric_value(loads(value))
    except MetricError as error:
        return _bad_report(str(error))
    return None


def check_final(value: str, objectives: Sequence[str]) -> tuple[float, ...] | Verdict:
    """The value of a final result for each objective, or the verdict on an unusable one."""
    result = loads(value)
    try:
        values = tuple(metric_value(result, name) for name in objectives)
    except MetricError as error:
        return _bad_report(str(error))
    if any(math.isnan(number) for number in values):
        return Verdict(Cause.ENDED_BADLY, "reported NaN as its final result", FailureKind.NAN)
    return values


def _bad_report(message: str) -> Verdict:
    return Verdict(Cause.ENDED_BADLY, message, FailureKind.USER_ERROR)


def judge_end(trial: Trial, ended: AttemptEnded) -> Verdict:
    """How a trial ends whose attempt is over: an earlier verdict stands, else the exit and the reports decide.

    A trial that ends well of itself while the experiment is being stopped has succeeded all the same.
    """
    ended_well = not ended.lost and ended.exit_code == 0 and ended.error is None and trial.final is not None
    if trial.verdict is not None and not (ended_well and trial.verdict.cause is Cause.SYSTEM_CANCEL):
        return trial.verdict
    if ended.lost:
        return Verdict(Cause.ENDED_BADLY, ended.error or "its agent was lost", FailureKind.INFRA)
    if ended.error is not None or ended.exit_code or ended.signal:
        return Verdict(Cause.ENDED_BADLY, _why_failed(ended), FailureKind.USER_ERROR)
    if trial.final is None:
        return Verdict(Cause.ENDED_BADLY, "ended without reporting a final result", FailureKind.USER_ERROR)
    twice = f"reported a final result {trial.finals} times; the first counts" if trial.finals > 1 else ""
    return Verdict(Cause.ENDED_WELL, twice)


def _why_failed(ended: AttemptEnded) -> str:
    last = _last_line(ended.error)
    if ended.signal:
        return f"killed by {_signal_name(ended.signal)}" + (f": {last}" if last else "")
    if last:
        return last
    return f"exit code {ended.exit_code}"


def _last_line(text: str | None) -> str:
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Two tracebacks that differ in a number only (a parameter's value, an address) are the same failure.
_NUMBERS = re.compile(r"0x[0-9a-f]+|[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


class FailureStreak:
    """Counts equal failures from the start of an experiment on, until the first trial that does not fail so.

    >>> streak = FailureStreak(limit=2)
    >>> streak.add("no such file"), streak.add("no such file")
    (False, True)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self._reason: str | None = None
        self._broken = False

    def add(self, reason: str) -> bool:
        """Note a failure; True when `limit` equal ones in a row have opened the experiment."""
        if self._broken:
            return False
        reason = _NUMBERS.sub("#", reason)
        if self._reason not in (None, reason):
            self._broken = True
            return False
        self._reason = reason
        self.count += 1
        return self.count == self.limit

    def clear(self) -> None:
        """A trial ended otherwise: the experiment works."""
        self._broken = True
