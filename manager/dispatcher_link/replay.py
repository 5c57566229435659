"""The replies that a restored dispatcher is expected to give again, queue by queue."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ...protocol import Frame, loads
from ...store import QUEUES, RecordRow, queue_of_reply


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
        if code != recorded_code or not _same(payload, frame.payload):
            both = enumerate(zip(frame.payload, payload, strict=False))
            place = next((place for place, (now, before) in both if now != before), 0)
            now, before = _around(place, frame.payload), _around(place, payload)
            raise Divergence(f"it replied {now} where it had replied {before}")
        return True

    def last_given(self, queue: str, answered: int) -> int:
        """Return the number of a queue's last reply so far, if `answered` replies are known."""
        expected = self._expected[queue]
        return expected[0][0] - 1 if expected else answered


def _around(place: int, text: str) -> str:
    """Return what of a text is near a place, which may be far into a list of numbers.

    >>> _around(300, "1" * 1000) == "…" + "1" * 180 + "…"
    True
    """
    start, end = max(0, place - 60), place + 120
    return f"{'…' * (start > 0)}{text[start:end]}{'…' * (end < len(text))}"


def _same(one: str, other: str) -> bool:
    return one == other or loads(one) == loads(other)
