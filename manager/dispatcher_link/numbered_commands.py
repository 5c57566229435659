"""Commands to the dispatcher: as they are numbered, committed and sent, and how far each of its queues has come.

The last functions make the commands by which a new dispatcher learns what an earlier one knew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...protocol import CommandType, dumps, encode_frame, loads, parameters_of
from ...runner import SendCommand, Trial, TrialRunner
from ...store import QUEUES, RecordRow

# A tuner that does not learn only notes these commands. They wait until there are `_MOST_UNSENT`, or for
# `_LONGEST_UNSENT` seconds, to leave in one write: each write wakes the dispatcher up. A longer queue would cause a
# warning there.
_NOTED = frozenset((CommandType.ReportMetricData, CommandType.TrialEnd))
_MOST_UNSENT = 18
_LONGEST_UNSENT = 0.02


@dataclass(slots=True)
class Command:
    """Command number `n`; `is_periodical` marks an intermediate result, which goes to other queues."""

    n: int
    type: CommandType
    payload: str
    is_periodical: bool = False

    @classmethod
    def recorded(cls, row: RecordRow) -> Command:
        """Return the command that the store holds.

        >>> Command.recorded((7, "ME", '{"type":"PERIODICAL"}')).is_periodical
        True
        """
        n, code, payload = row
        command = CommandType(code.encode())
        is_metric = command is CommandType.ReportMetricData
        return cls(n, command, payload, is_metric and loads(payload).get("type") == "PERIODICAL")

    def record(self) -> RecordRow:
        """Return the row that the store keeps."""
        return self.n, self.type.code, self.payload

    def frame(self) -> bytes:
        """Return the bytes for the pipe."""
        return encode_frame(self.type, self.payload)


class CommandSender:
    """Numbers commands, and hands the committed ones to `send`: each at once, or some of them together.

    `last` is the number of the last command, sent or not. While `is_eager`, every command leaves at once.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.last = 0
        self.is_eager = True
        self._send = send
        self._unsent = bytearray()
        self._unsent_count = 0
        self._flushing: asyncio.TimerHandle | None = None

    def number(self, commands: Iterable[SendCommand]) -> list[Command]:
        """Give commands their numbers; they must be committed before they are written."""
        numbered = [
            Command(n, sent.command, sent.payload, sent.is_periodical)
            for n, sent in enumerate(commands, self.last + 1)
        ]
        self.last += len(numbered)
        return numbered

    def write(self, commands: Iterable[Command]) -> None:
        """Send committed commands; what a plug-in that does not learn would only note may wait for the next ones."""
        is_urgent = self.is_eager
        for command in commands:
            self._unsent += command.frame()
            self._unsent_count += 1
            is_urgent = is_urgent or command.type not in _NOTED
        if is_urgent or self._unsent_count >= _MOST_UNSENT:
            self.flush()
        elif self._unsent and self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(_LONGEST_UNSENT, self.flush)

    def flush(self) -> None:
        """Send the commands that wait, in one write."""
        unsent = bytes(self._unsent)
        self.forget_unsent()
        if unsent:
            self._send(unsent)

    def forget_unsent(self) -> None:
        """Drop the commands that wait: the next process gets them from the record."""
        self._unsent.clear()
        self._unsent_count = 0
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None


class QueueProgress:
    """The last command that went to each queue, and the last one that it has done.

    All commands but intermediate results go to the default queue, the end of a trial to both. Intermediate results go
    to `periodical_queues`; without an assessor, its queue is not among them and gets nothing.

    >>> progress = QueueProgress()
    >>> progress.note_sent(Command(1, CommandType.RequestTrialJobs, "1"))
    >>> progress.is_complete, progress.first_undone(1)
    (False, 1)
    >>> progress.note_done("default", 1)
    >>> progress.is_complete, progress.first_undone(1)
    (True, 2)
    """

    def __init__(self) -> None:
        self.periodical_queues: tuple[str, ...] = ("assessor",)
        self.restart(0)

    def restart(self, covered: int) -> None:
        """Begin again with a process that has done the first `covered` commands."""
        self._done: dict[str, int] = dict.fromkeys(QUEUES, covered)
        # The last command of each kind: intermediate results, the end of a trial, and all but intermediate results.
        self._last_periodical, self._last_end, self._last_other = 0, covered, covered

    def note_sent(self, command: Command) -> None:
        """Note which queues a command goes to."""
        if command.is_periodical:
            self._last_periodical = command.n
            return
        self._last_other = command.n
        if command.type is CommandType.TrialEnd:
            self._last_end = command.n

    def note_done(self, queue: str, n: int) -> None:
        """Note that a queue has done everything up to command `n`, and that its replies are here."""
        self._done[queue] = n

    @property
    def is_complete(self) -> bool:
        """Whether both queues have done everything that they were sent."""
        return all(self._done[queue] >= self._last_of(queue) for queue in QUEUES)

    def is_still_at(self, n: int) -> bool:
        """Return whether no queue has done anything after command `n`."""
        return all(done == n for done in self._done.values())

    def first_undone(self, last: int) -> int:
        """Return the number of the first command that a queue has not done; the one after `last` if all are done."""
        late = [self._done[queue] for queue in QUEUES if self._done[queue] < self._last_of(queue)]
        return min(late, default=last) + 1

    def _last_of(self, queue: str) -> int:
        """Return the number of the last command that went to a queue; 0 for the queue of a missing assessor."""
        last = self._last_other if queue == "default" else self._last_end
        if queue in self.periodical_queues:
            return max(last, self._last_periodical)
        return last if queue == "default" else 0


def history_of(runner: TrialRunner) -> list[SendCommand]:
    """Return the commands that pass on all results and the parameter ids in use."""
    results = [
        {"parameter": parameters_of(trial.record), "value": value, "trialJobId": trial.trial_id}
        for trial, value in runner.results()
    ]
    records = [json.loads(trial.record) for trial in runner.get_trials()]
    return [
        SendCommand(CommandType.ImportData, json.dumps(results)),
        SendCommand(CommandType.AddCustomizedTrialJob, json.dumps(records)),
    ]


def user_imports(commands: Iterable[RecordRow], results: Iterable[tuple[Trial, str]]) -> list[SendCommand]:
    """Return the commands that pass on what users imported, except the `results` of trials themselves."""
    code = CommandType.ImportData.code
    payloads = [json.loads(payload) for _, sent, payload in commands if sent == code]
    rows = [row for rows in payloads for row in rows if "trialJobId" not in row]
    if not rows:
        return []
    own = {dumps([parameters_of(trial.record), value]) for trial, value in results}
    imported = [row for row in rows if dumps([row["parameter"], row.get("value")]) not in own]
    return [SendCommand(CommandType.ImportData, dumps(imported))] if imported else []
