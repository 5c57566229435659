"""The recorded messages between the manager and its dispatcher, from which a new dispatcher is restored.

Commands are numbered from 1 in the order in which they were committed, replies from 1 in the order in which they came.
The dispatcher replies from two queues, whose relative order is not fixed: replies are compared queue by queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..protocol import CommandType, loads

RecordRow = tuple[int, str, str]
"""A command or a reply: its number, its code, its payload."""

QUEUES = ("default", "assessor")
_VERDICTS = frozenset({CommandType.KillTrialJob.code, CommandType.Pause.code})


@dataclass(frozen=True, slots=True)
class SavedState:
    """A checkpoint of the dispatcher: the file `path` in its checkpoint folder covers all commands up to `n`.

    `default_reply` and `assessor_reply` are the numbers of the last replies of each queue that it covers.
    """

    n: int
    path: str
    default_reply: int
    assessor_reply: int

    def covers(self, record: RecordRow) -> bool:
        """Return whether this reply was given before the checkpoint.

        >>> SavedState(9, "nine", 4, 2).covers((3, "TR", "{}")), SavedState(9, "nine", 4, 2).covers((3, "KI", "{}"))
        (True, False)
        """
        number, code, payload = record
        last = self.default_reply if queue_of_reply(code, payload) == "default" else self.assessor_reply
        return number <= last


@dataclass(frozen=True, slots=True)
class DispatcherRecord:
    """The recorded commands and replies, from the beginning or, with `saved`, those that it may not cover."""

    commands: Sequence[RecordRow] = ()
    replies: Sequence[RecordRow] = ()
    saved: SavedState | None = None

    def expected(self) -> Iterator[RecordRow]:
        """Return the replies that a dispatcher will give again, in their order within each queue."""
        saved = self.saved
        return (record for record in self.replies if saved is None or not saved.covers(record))


def queue_of_reply(code: str, payload: str) -> str:
    """Return the queue of the dispatcher that a reply came from: verdicts are the assessor's, unless the tuner says so.

    >>> queue_of_reply("TR", "{}"), queue_of_reply("KI", '"AbCdE"')
    ('default', 'assessor')
    >>> queue_of_reply("PA", '{"trial_job_id": "AbCdE", "reason": "rung 0", "by": "tuner"}')
    'default'
    """
    if code not in _VERDICTS:
        return "default"
    verdict = loads(payload)
    return "default" if isinstance(verdict, dict) and verdict.get("by") == "tuner" else "assessor"
