"""Numbered commands to the dispatcher: as they are committed, and as they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ...protocol import CommandType, encode_frame, loads
from ...runner import SendCommand
from ...store import RecordRow

# What a tuner that does not learn only notes. It waits for so many others, or so many seconds, to leave in one write:
# each write wakes the dispatcher up. A longer queue would cause a warning there.
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
