"""The spool: the append-only file to which an attempt's reports are written first.

It holds one JSON object per line. A command trial has its own spool, written by the script, its descendants
and, in the last line, the agent:

    {"intermediate": 0.81}
    {"checkpoint": "1-1"}
    {"final": 0.9, "time": 1714550400.5}
    {"ended": {"exit_code": 0, "signal": null, "error": null, "killed": false, "time": 1714550401.0}}

Function trials share their agent's spool; there every line also carries `trial` and `attempt`. The
position of an intermediate result among those of its attempt is its sequence number; a checkpoint (the name of
a folder among those of the trial) continues with the number of the next one. Reading a spool again
gives the same events: this is how a dead agent's results are collected.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any, Literal

import orjson

from .events import Ended, Event, Problem, Report, ReportKind, Saved

__all__ = [
    "MAX_LINE",
    "MAX_NAME",
    "MAX_PROBLEMS",
    "Interpreter",
    "LineSplitter",
    "SpoolReader",
    "parse",
    "read_spool",
    "set_aside",
    "spool_name",
    "value_text",
]

MAX_LINE = 1_000_000
MAX_NAME = 100  # characters of the name of a checkpoint
_KINDS: tuple[ReportKind | Literal["checkpoint"], ...] = ("intermediate", "final", "checkpoint")
_PUNCTUATION = str.maketrans("", "", "._-")
MAX_PROBLEMS = 20  # of one attempt: limits the messages about a script that keeps writing rubbish


class LineSplitter:
    """Cuts a growing file into whole lines; a line over `MAX_LINE` bytes is replaced by None.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"one\\ntw"), splitter.feed(b"o\\n"), splitter.rest
    ([b'one'], [b'two'], b'')
    """

    def __init__(self) -> None:
        self.rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that `data` completes, without their newlines."""
        *lines, rest = (self.rest + data).split(b"\n")
        whole: list[bytes | None] = [line if len(line) <= MAX_LINE else None for line in lines]
        if self._skipping and whole:
            del whole[0]  # the end of a line that was already returned as None
            self._skipping = False
        if self._skipping:
            rest = b""
        elif len(rest) > MAX_LINE:
            whole.append(None)
            self._skipping, rest = True, b""
        self.rest = rest
        return whole


class Interpreter:
    """Turns the lines of one attempt into its events and counts its results.

    `metric` is the name of the value of a checkpoint in a reported dict.
    """

    def __init__(
        self, trial: str, attempt: int, first_sequence: int = 0, mark: str = "", *, metric: str = "default"
    ) -> None:
        self._ended = False
        self._trial = trial
        self._attempt = attempt
        self._mark = mark
        self._metric = metric
        self._next = {"intermediate": first_sequence, "final": 0}
        self._last = "null"  # the value reported last
        self._lines = 0
        self._problems = 0

    def line(self, line: bytes | None, now: float) -> list[Event]:
        """Return the events of one line: none for a blank line, a problem for an invalid one."""
        self._lines += 1
        if line is None:
            return self._problem(f"is longer than {MAX_LINE} bytes")
        if not line.strip():
            return []
        record = parse(line)
        return (
            self._problem(f"is not a JSON object: {_shown(line)}")
            if record is None
            else self.record(record, now)
        )

    def read_again(self, line: bytes | None, record: dict[str, Any] | None, now: float) -> list[Event]:
        """Return the events of one line of a spool whose writer may have ended, with the end if it is there."""
        if self._ended:
            return []
        outcome = (record or {}).get("ended")
        if not isinstance(outcome, dict):
            return self.line(line, now)
        self._ended = True
        moment = _finite(outcome.get("time"))
        who = {"trial": self._trial, "attempt": self._attempt, "mark": self._mark}
        return [Ended.of({**outcome, **who, "time": now if moment is None else moment})]

    def record(self, record: dict[str, Any], now: float) -> list[Event]:
        """Return the events of one parsed line."""
        kinds: list[ReportKind | Literal["checkpoint"]] = [kind for kind in _KINDS if kind in record]
        try:
            if len(kinds) != 1:
                shown = _shown(json.dumps(record, separators=(",", ":")).encode())
                return self._problem(f'needs one of "intermediate", "final" and "checkpoint": {shown}')
            moment = _finite(record.get("time"))
            moment = now if moment is None else moment
            if (kind := kinds[0]) == "checkpoint":
                return self._named(record["checkpoint"], moment)
            return [self.report(kind, value_text(record[kind]), moment)]
        except RecursionError:
            return self._problem("holds lists or objects that are nested too deeply")

    def report(self, kind: ReportKind, value: str, moment: float) -> Report:
        """Count one result and return its event."""
        sequence = self._next[kind]
        self._next[kind] = sequence + 1
        self._last = value
        return Report(self._trial, self._attempt, kind, sequence, value, moment, self._mark)

    def checkpoint(self, name: str, moment: float) -> Saved:
        """Return the event for a checkpoint that was saved after all results counted so far."""
        return Saved(
            trial=self._trial,
            attempt=self._attempt,
            name=name,
            sequence=self._next["intermediate"],
            value=_number(self._last, self._metric),
            time=moment,
            mark=self._mark,
        )

    def reported(self, kind: str) -> bool:
        """Return whether this attempt has reported a result of that kind."""
        return self._next[kind] > 0

    def _named(self, name: object, moment: float) -> list[Event]:
        """Return the event for a checkpoint that a script names."""
        if not isinstance(name, str) or not name.startswith(f"{self._attempt}-"):
            wanted = f"the name of a folder in $PITCHPIPE_CHECKPOINTS that begins with {self._attempt}-"
            return self._problem(f"names a checkpoint {name!r:.100}: it needs {wanted}")
        if len(name) > MAX_NAME or not name.isascii() or not name.translate(_PUNCTUATION).isalnum():
            return self._problem(
                f"names a checkpoint {name!r:.100}: use up to {MAX_NAME} letters, digits, '.', '_', '-'"
            )
        return [self.checkpoint(name, moment)]

    def problem(self, message: str) -> list[Event]:
        """Return the event for a problem, unless there were too many already."""
        self._problems += 1
        if self._problems > MAX_PROBLEMS:
            return []
        last = "; further problems are not mentioned" if self._problems == MAX_PROBLEMS else ""
        return [Problem(self._trial, self._attempt, message + last, self._mark)]

    def _problem(self, what: str) -> list[Event]:
        return self.problem(f"line {self._lines} of the reports {what}")


class SpoolReader:
    """Follows the spool of one command trial: bytes in, events out; whole lines only.

    >>> reader = SpoolReader(trial="AbCdE", attempt=1, clock=lambda: 12.5)
    >>> [event.value for event in reader.feed(b'{"intermediate": 0.8}\\n{"inter')]
    ['0.8']
    >>> [event.text for event in reader.finish()]
    ['line 2 of the reports is not a JSON object: \\'{"inter\\'']
    """

    def __init__(
        self,
        *,
        trial: str,
        attempt: int,
        first_sequence: int = 0,
        clock: Callable[[], float] = time.time,
        mark: str = "",
        metric: str = "default",
    ) -> None:
        self._interpreter = Interpreter(trial, attempt, first_sequence, mark, metric=metric)
        self._splitter = LineSplitter()
        self._clock = clock

    @property
    def has_final(self) -> bool:
        """Whether a final result was reported."""
        return self._interpreter.reported("final")

    @property
    def inside_line(self) -> bool:
        """Whether the bytes so far end without a newline."""
        return bool(self._splitter.rest)

    def feed(self, data: bytes) -> list[Event]:
        """Return the events of the lines that `data` completes."""
        now = self._clock()
        return [event for line in self._splitter.feed(data) for event in self._interpreter.line(line, now)]

    def take_back(self, count: int) -> bool:
        """Forget an incomplete last line of exactly `count` bytes; return whether there was one."""
        if len(self._splitter.rest) != count:
            return False
        self._splitter = LineSplitter()
        return True

    def restart(self, reason: str) -> list[Event]:
        """Begin again with an empty file, whose results are already counted; return the problem to report."""
        self._splitter = LineSplitter()
        return self._interpreter.problem(reason)

    def finish(self) -> list[Event]:
        """Return the events of a last line without a newline, after all bytes have arrived."""
        rest = self._splitter.rest
        return self._interpreter.line(rest, self._clock()) if rest else []


def spool_name(attempt: int, mark: str = "") -> str:
    """Return the name of the spool of a command trial's attempt, in the trial's folder.

    >>> spool_name(1, "5f1c"), spool_name(2)
    ('reports-1-5f1c.jsonl', 'reports-2.jsonl')
    """
    return f"reports-{attempt}-{mark}.jsonl" if mark else f"reports-{attempt}.jsonl"


def set_aside(path: str | os.PathLike[str]) -> None:
    """Rename a file where a spool is about to begin: a forgotten attempt has left it."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path):
            os.replace(path, f"{os.fspath(path)}.old")


def read_spool(
    path: str | os.PathLike[str],
    trial: str | None = None,
    attempt: int | None = None,
    first_sequence: int = 0,
    mark: str = "",
) -> list[Event]:
    """Return the events in a spool as its agent would have sent them, without a torn last line.

    `trial` and `attempt` select events in the spool of an agent, and label them in the spool of a command trial,
    whose lines do not name them. Lines with a `mark` other than the one given belong to another trial.
    Raises OSError when there is no such file.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "agent-1.jsonl")
    >>> _ = open(path, "w").write('{"trial": "AbCdE", "attempt": 1, "final": 0.9, "time": 12.5}\\n{"trial"')
    >>> [(event.kind, event.value) for event in read_spool(path)]
    [('final', '0.9')]
    """
    with open(path, "rb") as file:
        data = file.read()
        modified = os.fstat(file.fileno()).st_mtime
    splitter = LineSplitter()
    lines = splitter.feed(data)
    if parse(splitter.rest) is not None:
        lines.append(splitter.rest)
    found: list[Event] = []
    interpreters: dict[tuple[str, int], Interpreter] = {}
    for line in lines:
        record = None if line is None else parse(line)
        key = _key_of(record, trial, attempt)
        if key is not None and (not mark or (record or {}).get("mark", mark) == mark):
            interpreter = interpreters.setdefault(key, Interpreter(*key, first_sequence, mark))
            found += interpreter.read_again(line, record, modified)
    return found


def _key_of(record: dict[str, Any] | None, trial: str | None, attempt: int | None) -> tuple[str, int] | None:
    """Return the trial and attempt of a line; None if it names none, or not the requested attempt."""
    if record is None or "trial" not in record or "attempt" not in record:
        return None if trial is None or attempt is None else (trial, attempt)
    key = (record["trial"], record["attempt"])
    wanted = (trial is None or key[0] == trial) and (attempt is None or key[1] == attempt)
    return key if wanted else None


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line, or None. NaN and infinities are valid, as Python and shells write them.

    >>> parse(b'{"final": NaN}'), parse(b'0.9'), parse(b'{"fin')
    ({'final': nan}, None, None)
    """
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None
    return record if isinstance(record, dict) else None


def value_text(value: object) -> str:
    """Return the JSON text of a reported value.

    >>> value_text(0.5), value_text(float("nan")), value_text({"default": 1})
    ('0.5', 'NaN', '{"default": 1}')
    """
    if type(value) is float and math.isfinite(value):
        return repr(value)
    return json.dumps(value)


def _number(value: str, metric: str) -> float | None:
    """Return the finite number in a value's JSON text: the value itself or its `metric`; None if there is none.

    >>> _number("0.5", "f1"), _number('{"f1": 2}', "f1"), _number("NaN", "f1"), _number('"best"', "f1")
    (0.5, 2.0, None, None)
    """
    found = json.loads(value)
    number = found.get(metric) if isinstance(found, dict) else found
    return _finite(number)


def _finite(number: object) -> float | None:
    """Return a finite number as a float; None for anything else.

    >>> _finite(2), _finite(float("nan")), _finite(10**400), _finite("2")
    (2.0, None, None, None)
    """
    try:
        found = float(number) if isinstance(number, (int, float)) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= 120 else text[:117] + "...")
