"""The spool: the append-only file to which an attempt's reports are written first.

It holds one JSON object per line. A command trial has its own spool, written by the script, its descendants
and, in the last line, the agent:

    {"intermediate": 0.81}
    {"checkpoint": "1-1"}
    {"final": 0.9, "time": 1714550400.5}
    {"ended": {"exit_code": 0, "signal": null, "error": null, "killed": false, "time": 1714550401.0}}

Function trials share their agent's spool; there every line also carries `trial` and `attempt`. A line with
`began_again` means that the manager's store had forgotten the attempt, which begins there for the second time. The
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
from typing import Literal, TypeGuard, TypeVar

import orjson

from ..protocol import JsonObject, cut
from ..sdk import CodeFacts, merged_code
from .agent_events import AttemptFields, Ended, Event, Report, ReportKind, Saved, SpoolProblem
from .checkpoint_store import is_whole
from .messages import from_message

MAX_LINE = 1_000_000
MAX_NAME = 100  # characters of the name of a checkpoint
_KINDS: frozenset[ReportKind | Literal["checkpoint"]] = frozenset(("intermediate", "final", "checkpoint"))
_PUNCTUATION = str.maketrans("", "", "._-")
_T = TypeVar("_T")
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
        self._who: AttemptFields = {"trial": trial, "attempt": attempt, "mark": mark}
        self._metric = metric
        self._next = {"intermediate": first_sequence, "final": 0}
        self.last: str | None = None  # the value reported last
        self.unasked = False  # a process reported that had not asked for its parameters
        self.code: CodeFacts | None = None  # what the processes have loaded
        self._lines = 0
        self._problems = 0

    def line(self, line: bytes | None, now: float) -> list[Event]:
        """Return the events of one line: none for a blank line, a problem for an invalid one."""
        return self.parsed(line, None if line is None else parse(line), now)

    def read_again(self, line: bytes | None, record: JsonObject | None, now: float) -> list[Event]:
        """Return the events of one line of a spool whose writer may have ended, with the end if it is there."""
        if self._ended:
            return []
        outcome = None if record is None else record.get("ended")
        if not _is_outcome(outcome):
            return self.parsed(line, record, now)
        self._ended = True
        end = {**outcome, **self._who, "e": "ended", "time": _finite(outcome.get("time"), now)}
        return [from_message(Ended, end)]

    def parsed(self, line: bytes | None, record: JsonObject | None, now: float) -> list[Event]:
        """Return the events of one line that `parse` made a `record`, or could not."""
        self._lines += 1
        if record is not None:
            return self.record(record, now)
        if line is None:
            return self._problem(f"is longer than {MAX_LINE} bytes")
        return self._problem(f"is not a JSON object: {_excerpt(line)}") if line.strip() else []

    def record(self, record: JsonObject, now: float) -> list[Event]:
        """Return the events of one parsed line."""
        kinds = _KINDS.intersection(record)
        try:
            if len(kinds) != 1:
                excerpt = _excerpt(json.dumps(record, separators=(",", ":")).encode())
                return self._problem(f'needs one of "intermediate", "final" and "checkpoint": {excerpt}')
            (kind,) = kinds
            moment = _finite(record.get("time"), now)
            if kind == "checkpoint":
                return self._named(record["checkpoint"], moment)
            self.unasked |= record.get("asked") is False
            if isinstance(loaded := record.get("code"), dict):
                self.code = merged_code([self.code or {}, loaded])
            return [self.report(kind, value_text(record[kind]), moment)]
        except RecursionError:
            return self._problem("holds lists or objects that are nested too deeply")

    def report(self, kind: ReportKind, value: str, moment: float) -> Report:
        """Count one result and return its event."""
        sequence = self._next[kind]
        self._next[kind] = sequence + 1
        self.last = value
        return Report(self._trial, self._attempt, kind, sequence, value, moment, self._mark)

    def checkpoint(self, name: str, moment: float) -> Saved:
        """Return the event for a checkpoint that was saved after all results counted so far."""
        return Saved(
            **self._who,
            name=name,
            sequence=self._next["intermediate"],
            value=_number(self.last or "null", self._metric),
            time=moment,
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
            wanted = f"up to {MAX_NAME} letters, digits, '.', '_', '-'"
            return self._problem(f"names a checkpoint {name!r:.100}: use {wanted}")
        return [self.checkpoint(name, moment)]

    def problem(self, message: str) -> list[Event]:
        """Return the event for a problem, unless there were too many already."""
        self._problems += 1
        if self._problems > MAX_PROBLEMS:
            return []
        last = "; further problems are not mentioned" if self._problems == MAX_PROBLEMS else ""
        return [SpoolProblem(**self._who, message=message + last)]

    def _problem(self, what: str) -> list[Event]:
        return self.problem(f"line {self._lines} of the reports {what}")


class SpoolReader:
    """Follows the spool of one command trial: bytes in, events out; whole lines only.

    >>> reader = SpoolReader(trial="AbCdE", attempt=1, clock=lambda: 12.5)
    >>> [event.value for event in reader.feed(b'{"intermediate": 0.8}\\n{"inter')]
    ['0.8']
    >>> [event.message for event in reader.finish()]
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
    def unasked(self) -> bool:
        """Whether a process reported that had not asked for its parameters."""
        return self._interpreter.unasked

    @property
    def code(self) -> CodeFacts | None:
        """The files in the code directory that the processes have loaded, and the versions of their packages."""
        return self._interpreter.code

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


def output_name(stream: str, attempt: int) -> str:
    """Return the name of the file with what an attempt printed to `stdout` or `stderr`.

    >>> output_name("stdout", 1), output_name("stdout", 2)
    ('stdout', 'stdout-2')
    """
    return stream if attempt <= 1 else f"{stream}-{attempt}"


def spool_name(attempt: int, mark: str = "", node: int = 0) -> str:
    """Return the name of the spool of a command trial's attempt on one of its nodes, in the trial's folder.

    >>> spool_name(1, "5f1c"), spool_name(2), spool_name(2, node=1)
    ('reports-1-5f1c.jsonl', 'reports-2.jsonl', 'reports-2-node1.jsonl')
    """
    words = ["reports", str(attempt), mark, f"node{node}" if node else ""]
    return f"{'-'.join(filter(None, words))}.jsonl"


def set_aside(path: str | os.PathLike[str]) -> None:
    """Rename the file that a forgotten attempt has left at the path of a new spool."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.getsize(path):
            os.replace(path, f"{os.fspath(path)}.old")


def read_spool(
    path: str | os.PathLike[str],
    trial: str,
    attempt: int,
    first_sequence: int = 0,
    *,
    mark: str = "",
    metric: str = "default",
    checkpoints: str | os.PathLike[str] | None = None,
) -> list[Event]:
    """Return the events of an attempt in a spool as its agent would have sent them, without a torn last line.

    Lines in the spool of an agent name the attempt that wrote them; those with a `mark` other than the one given belong
    to another trial. Lines in the spool of a command trial name none. `metric` is the name of the value of a checkpoint
    in a reported dict. With the folder `checkpoints`, those that no agent has admitted do not count: a script names one
    before it is on the disk, and a power cut may leave the name alone. It may also leave NULs in the place of lines:
    nothing after the first one counts. What precedes a line with `began_again` does not count either. Raises OSError
    when there is no such file.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "agent-1.jsonl")
    >>> _ = open(path, "w").write('{"trial": "AbCdE", "attempt": 1, "final": 0.9, "time": 12.5}\\n{"trial"')
    >>> [(event.kind, event.value) for event in read_spool(path, "AbCdE", 1)]
    [('final', '0.9')]
    """
    with open(path, "rb") as file:
        data = file.read()
        modified = os.fstat(file.fileno()).st_mtime
    splitter = LineSplitter()
    lines = splitter.feed(data.partition(b"\0")[0])
    if parse(splitter.rest) is not None:
        lines.append(splitter.rest)
    interpreter = Interpreter(trial, attempt, first_sequence, mark, metric=metric)
    events: list[Event] = []
    for line in lines:
        record = None if line is None else parse(line)
        if record is not None and "began_again" in record and _is_of(record, trial, attempt, mark):
            interpreter, events = Interpreter(trial, attempt, first_sequence, mark, metric=metric), []
        elif record is None or _is_of(record, trial, attempt, mark):
            events += interpreter.read_again(line, record, modified)
    if checkpoints is None:
        return events
    return [
        event
        for event in events
        if not isinstance(event, Saved) or is_whole(os.path.join(checkpoints, event.name))
    ]


def _is_of(record: JsonObject, trial: str, attempt: int, mark: str) -> bool:
    """Return whether a line is of an attempt: it names that one, or none."""
    if mark and record.get("mark", mark) != mark:
        return False
    return (
        "trial" not in record
        or "attempt" not in record
        or (record["trial"] == trial and record["attempt"] == attempt)
    )


def _is_outcome(outcome: object) -> TypeGuard[JsonObject]:
    """Return whether a value is what an agent writes about an attempt's end; `time` is checked where it is used.

    >>> _is_outcome({"exit_code": 0, "error": None}), _is_outcome({"exit_code": "0"}), _is_outcome({})
    (True, False, False)
    """
    if not isinstance(outcome, dict) or "exit_code" not in outcome:
        return False
    numbers = [outcome["exit_code"], outcome.get("signal")]
    flags = [outcome.get(name, False) for name in ("killed", "paused", "out_of_memory", "infra")]
    exported = outcome.get("exported", {})
    return (
        all(number is None or (type(number) is int and 0 <= number < 256) for number in numbers)
        and all(isinstance(flag, bool) for flag in flags)
        and isinstance(outcome.get("error"), str | None)
        and isinstance(exported, dict)
        and all(isinstance(path, str) for path in exported.values())
    )


def parse(line: bytes) -> JsonObject | None:
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
    result = json.loads(value)
    number = result.get(metric) if isinstance(result, dict) else result
    return _finite(number, None)


def _finite(number: object, otherwise: _T) -> float | _T:
    """Return a finite number as a float; `otherwise` for anything else.

    >>> _finite(2, None), _finite(float("nan"), 1.5), _finite(10**400, None), _finite("2", None)
    (2.0, 1.5, None, None)
    """
    try:
        return float(number) if isinstance(number, (int, float)) and math.isfinite(number) else otherwise
    except OverflowError:
        return otherwise


def _excerpt(line: bytes) -> str:
    return repr(cut(line.decode("utf-8", "replace"), 120))
