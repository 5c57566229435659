"""Verdicts: whether a reported value is a result, how an attempt ended, whether failures repeat themselves."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Sequence
from reprlib import repr as short_repr
from typing import Any

from ..protocol import (
    CHECKPOINT_GONE,
    LED_TO,
    NOT_STARTED,
    OVER_LIMIT,
    MetricError,
    cut,
    loads,
    metric_value,
    names_of,
)
from .events import AttemptEnded
from .trial import Cause, FailureKind, Trial, Verdict

UNASKED = "never asked for its parameters"
TUNES_NOTHING = "the search tunes nothing, because no trial has asked for its parameters"
TUNE_SOMETHING = "use what pitchpipe.get_next_parameter() returns, or write {args} in trial_command"
LEFT_RUNNING = (
    "its command ended before the programs that it had started, which were then killed without a final result: remove &"
    " and nohup, so that the command waits for them"
)
NO_RESULT = "ended without reporting a final result: call pitchpipe.report_final_result(value) once"


def fault_of_intermediate(value: str, main: str, names: Sequence[str]) -> str:
    """Return why an intermediate result is unusable; empty for a usable one (NaN is left to the assessor).

    A dict needs only the `main` objective; the others of `names` may be missing or None.
    """
    try:
        if math.isfinite(float(value)):
            return ""  # the usual case, a bare number: no JSON parser needed
    except ValueError:
        pass
    report = loads(value)
    reported = {name for name in names if isinstance(report, dict) and report.get(name) is not None}
    try:
        for name in sorted(reported | {main}):
            metric_value(report, name)
    except MetricError as error:
        return str(error)
    return ""


def check_final(value: str, names: Sequence[str]) -> tuple[float, ...] | Verdict:
    """Return the metrics of a final result, or the verdict on an unusable one."""
    try:
        if len(names) == 1 and math.isfinite(number := float(value)):
            return (number,)  # the usual case, a bare number: no JSON parser needed
    except ValueError:
        pass
    result = loads(value)
    missing = [name for name in names if not isinstance(result, dict) or name not in result]
    if missing and len(names) > 1:  # a result with one metric is judged by `metric_value`
        listed = ", ".join(map(repr, missing))
        if not isinstance(result, dict):
            return _bad_report(f"reported {short_repr(result)}, not a dict with {listed}")
        return _bad_report(
            f"reported a dict without {listed}{f': it has {names_of(result)}' if result else ''}"
        )
    try:
        values = tuple(metric_value(result, name) for name in names)
    except MetricError as error:
        return _bad_report(str(error))
    if nan := [name for name, number in zip(names, values, strict=True) if math.isnan(number)]:
        which = f" for {', '.join(nan)}" if len(names) > 1 else ""
        return Verdict(Cause.ENDED_BADLY, f"reported NaN{which} as its final result", FailureKind.NAN)
    return values


def _bad_report(message: str) -> Verdict:
    return Verdict(Cause.ENDED_BADLY, message, FailureKind.USER_ERROR)


def judge_end(trial: Trial, ended: AttemptEnded) -> Verdict:
    """Return how a trial continues after an attempt: an earlier verdict counts, else its exit and its reports decide.

    A final result counts, even if the trial is cut off afterwards. It does not count if a user has killed the trial, or
    if the script says that it has failed, by its exit code or an invalid report.
    """
    verdict = trial.verdict
    ended_well = not ended.lost and ended.exit_code == 0 and ended.error is None and trial.final is not None
    if verdict is None or (ended_well and verdict.cause is Cause.SYSTEM_CANCEL):
        return _judge_by_itself(trial, ended)
    if verdict.cause is Cause.PAUSED:
        cut_off = ended.paused or ended.lost or ended.infra or ended.signal is not None
        return verdict if trial.final is None and cut_off else _judge_by_itself(trial, ended)
    if trial.final is not None and verdict.cause is Cause.EARLY_STOP:
        return Verdict(Cause.ENDED_WELL, f"it had finished when it was to be stopped ({verdict.reason})")
    if trial.final is not None and (verdict.cause is Cause.SYSTEM_CANCEL or verdict.kind in _CUT_OFF):
        return Verdict(Cause.ENDED_WELL, f"it had reported its final result ({verdict.reason})")
    return verdict


# A trial that fails in one of these ways did not end by itself.
_CUT_OFF = (FailureKind.INFRA, FailureKind.TIMEOUT, FailureKind.KILLED)


def _judge_by_itself(trial: Trial, ended: AttemptEnded) -> Verdict:
    failed = bool(ended.error is not None or ended.exit_code or ended.signal)
    kind = failure_kind(ended) if failed else None
    is_machines = ended.lost or ended.infra or kind is FailureKind.INFRA
    if trial.final is None and (ended.paused or (trial.finals and (is_machines or not failed))):
        return Verdict(Cause.PAUSED, f"has spent its budget of {trial.budget or 0:g}")
    is_cut_off = trial.final is not None and (is_machines or failed)
    if is_cut_off and (note := _cut_off_by(ended, kind)) is not None:
        return Verdict(Cause.ENDED_WELL, note)
    if ended.lost:
        return Verdict(Cause.ENDED_BADLY, ended.error or "its agent was lost", FailureKind.INFRA)
    if ended.killed and trial.final is None:
        return Verdict(Cause.ENDED_BADLY, "its agent was shut down", FailureKind.INFRA)
    if failed:
        return Verdict(Cause.ENDED_BADLY, _why_failed(ended), kind)
    if trial.final is None:
        why = LEFT_RUNNING if ended.left_running else NO_RESULT
        return Verdict(Cause.ENDED_BADLY, why, FailureKind.USER_ERROR)
    twice = f"reported a final result {trial.finals} times; the first counts" if trial.finals > 1 else ""
    return Verdict(Cause.ENDED_WELL, "; ".join(filter(None, [UNASKED if ended.unasked else "", twice])))


def _cut_off_by(ended: AttemptEnded, kind: FailureKind | None) -> str | None:
    """Return what ended a trial after its final result, as a note; None if its own word is that it has failed."""
    if ended.lost or ended.infra:
        what = "was lost" if ended.lost else "failed"
        return f"its agent {what} after it had reported its final result"
    if ended.paused:
        return ""
    if ended.killed:
        return "its agent was shut down after its final result"
    if kind in _CUT_OFF or ended.out_of_memory:
        return f"it failed after it had reported its final result ({_why_failed(ended)})"
    return None


# What a line of an exception's own text begins with or contains.
_MACHINE = re.compile(r"(\w+\.)*MachineError\b")  # of `trial_agent`, raised in the trial's process
_IMPORT = re.compile(r"(ImportError|ModuleNotFoundError|(\w+\.)*MissingExtraError)\b")
_OUT_OF_MEMORY = re.compile(
    r"(\w+\.)*(\w*MemoryError|ResourceExhaustedError)\b"  # Python, numpy, torch, cupy; TensorFlow
    r"|.*(\bout of memory\b|OUT_OF_MEMORY|MemoryAllocation|STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: "  # CUDA, XLA
    r"|\bOOM when |(cannot|can't) allocate memory|std::bad_alloc)",
    re.IGNORECASE,
)
_OVER_LIMIT = re.compile(rf"used .+, {OVER_LIMIT} ")
# The exit code of a shell whose command was ended by a signal is 128 + the signal.
_BY_SHELL = {
    128 + number: number for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM)
}

_TRACEBACK = "Traceback (most recent call last)"
_LONGEST_EXCEPTION = 300  # characters
# An exception by its name, and one that is only recognised after a traceback.
_EXCEPTION = re.compile(r"(\w+\.)*\w*(Error|Exception|Interrupt|Exit|Warning)(: |$)")
_NAMED = re.compile(r"(\w+\.)*[A-Z]\w*(: |$)")


def failure_kind(ended: AttemptEnded) -> FailureKind:
    """Return the kind of failure of an attempt that ended badly by itself.

    >>> failure_kind(AttemptEnded(0.0, "AbCdE", 1, exit_code=1, error="ImportError: no module named tensorflow"))
    <FailureKind.IMPORT: 'IMPORT'>
    """
    said = [_said(part) for part in _chain(ended.error)]
    if ended.infra or is_checkpoint_gone(ended.error) or is_disk_full(ended.error):
        return FailureKind.INFRA
    if any(_MACHINE.match(line) for lines in said for line in lines):
        return FailureKind.INFRA
    if ended.out_of_memory or _memory_line(ended.error):
        return FailureKind.OOM
    if ended.signal is not None or ended.exit_code in _BY_SHELL:
        return FailureKind.KILLED
    return FailureKind.IMPORT if any(map(_IMPORT.match, said[-1])) else FailureKind.USER_ERROR


# The messages of ENOSPC, EDQUOT and EROFS, and that of SQLite.
_DISK_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|database or disk is full",
    re.IGNORECASE,
)
_ITS_END = 3  # lines in which a program that fails says why; earlier ones may be warnings
_LED_TO = re.compile("|".join(map(re.escape, LED_TO)))


def is_disk_full(error: str | None) -> bool:
    """Return whether an attempt failed because the disk was full or read-only: its last lines or a cause say so.

    >>> is_disk_full("OSError: [Errno 28] No space left on device: 'model.bin'")
    True
    """
    return any(map(_DISK_FULL.search, [line for part in _chain(error) for line in _lines(part)[-_ITS_END:]]))


def _chain(error: str | None) -> list[str]:
    """Return the traceback of an exception and those of the exceptions that led to it, the last one last."""
    return _LED_TO.split(error or "")


def _said(traceback: str) -> list[str]:
    """Return the lines of the exception with which a traceback ends; the last lines of any other text."""
    lines = _lines(traceback)
    starts = [number for number, line in enumerate(lines) if _EXCEPTION.match(line)]
    return lines[starts[-1] :] if starts else lines[-_ITS_END:]


def _memory_line(error: str | None) -> str:
    """Return the line of an exception, or of a cause of it, that says that memory was used up."""
    lines = [line for part in reversed(_chain(error)) for line in _said(part)]
    return next(filter(_OUT_OF_MEMORY.match, lines), "")


def is_checkpoint_gone(error: str | None) -> bool:
    """Return whether an attempt failed because its checkpoint is lost, for example with a node's disk."""
    return CHECKPOINT_GONE in last_line(error)


def _why_failed(ended: AttemptEnded) -> str:
    last = _memory_line(ended.error) or _exception_text(ended.error) or last_line(ended.error)
    number = ended.signal or _BY_SHELL.get(ended.exit_code or 0)
    if ended.out_of_memory and _OVER_LIMIT.match(last):
        return last  # the signal was ours
    if number:
        return f"killed by {signal_name(number)}" + (f": {last}" if last else "")
    if last and (not ended.exit_code or ended.out_of_memory or _says_enough(last, ended.error or "")):
        return last
    return f"exit code {ended.exit_code}" + (f": {last}" if last else "")


def _exception_text(error: str | None) -> str:
    """Return the exception with which a traceback ends, on one line; empty for other texts.

    >>> _exception_text(f"{_TRACEBACK}:\\n  File 'a.py', line 1\\nValueError: X has NaN.\\nUse another model.\\n")
    'ValueError: X has NaN. Use another model.'
    """
    lines = _chain(error)[-1].splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip().startswith(_TRACEBACK)]
    after = lines[starts[-1] + 1 :] if starts else []
    begin = next(
        (number for number, line in enumerate(after) if line.strip() and not line[0].isspace()), len(after)
    )
    return cut(" ".join(" ".join(after[begin:]).split()), _LONGEST_EXCEPTION)


def _says_enough(last: str, error: str) -> bool:
    """Return whether the last line ends a traceback, or says why a command could not be started."""
    if last.startswith(NOT_STARTED):
        return True
    return bool(_EXCEPTION.match(last) or (_TRACEBACK in error and _NAMED.match(last)))


def last_line(text: str | None) -> str:
    """Return the last line of a text that is not blank; empty if there is none."""
    return next(reversed(_lines(text)), "")


def _lines(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def signal_name(number: int) -> str:
    """Return the usual name of a signal.

    >>> signal_name(9), signal_name(99)
    ('SIGKILL', 'signal 99')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Tracebacks that differ only in numbers (a parameter's value, an address) are the same failure, and those that differ
# only in the order of a set, which changes from process to process.
_SET = re.compile(r"\{([^{}]*)\}")
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d+(\.\d+)?(e[-+]?\d+)?")


def fingerprint(text: str) -> str:
    """Return the reason of a failure without its numbers and with sorted sets, to compare failures.

    >>> fingerprint("KeyError: 'lr' at 0x7f00") == fingerprint("KeyError: 'lr' at 0x1a2b")
    True
    >>> fingerprint("kernel is none of {'rbf', 'poly'}") == fingerprint("kernel is none of {'poly', 'rbf'}")
    True
    """
    in_order = _SET.sub(lambda match: f"{{{', '.join(sorted(match[1].split(', ')))}}}", text)
    return _NUMBERS.sub("#", in_order)


class FailureStreak:
    """Counts equal failures from the start of an experiment, until the first trial that ends differently.

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
        """Add a failure; return whether the first `limit` trials have failed alike."""
        if self._broken:
            return False
        reason = fingerprint(reason)
        if self._reason not in (None, reason):
            self._broken = True
            return False
        self._reason = reason
        self.count += 1
        return self.is_full

    @property
    def is_full(self) -> bool:
        """Whether the first `limit` trials have failed alike."""
        return not self._broken and 0 < self.limit <= self.count

    def restart(self) -> None:
        """Count from 0 again, because the failed trials run again; a streak that has ended stays ended."""
        self.count, self._reason = 0, None

    def clear(self) -> None:
        """End the streak: a trial has shown that the experiment works."""
        self._broken = True

    def snapshot(self) -> list[Any]:
        """Return the state as plain JSON values."""
        return [self.count, self._reason, self._broken]

    def restore(self, snapshot: Sequence[Any] | None) -> None:
        """Restore what `snapshot` returned, if there was one."""
        if snapshot is not None:
            self.count, self._reason, self._broken = snapshot
