"""What a dispatcher remembers of trials, in memory that does not grow with the number of ended trials."""

from __future__ import annotations

from typing import Any


class History:
    """The intermediate results of one trial, in the order of their sequence numbers, which begin with `first`.

    >>> history = History()
    >>> history.add(0, 0.1), history.add(2, 0.3), history.values
    (True, False, [0.1])
    >>> history.add(1, 0.2), history.values
    (True, [0.1, 0.2, 0.3])
    """

    __slots__ = ("_early", "_first", "values")

    def __init__(self, first: int = 0) -> None:
        self.values: list[Any] = []
        self._first = first
        self._early: dict[int, Any] = {}  # arrived before an earlier one

    def add(self, sequence: int, value: Any) -> bool:
        """Take a result and return whether `values` grew; a known one changes nothing."""
        values = self.values
        sequence -= self._first
        if sequence != len(values):
            if sequence > len(values):
                self._early.setdefault(sequence, value)
            return False
        values.append(value)
        while self._early and len(values) in self._early:
            values.append(self._early.pop(len(values)))
        return True


class Recent:
    """The ids that were added last, at most `limit`.

    >>> recent = Recent(2)
    >>> for name in "abc":
    ...     recent.add(name)
    >>> "a" in recent, "b" in recent, "c" in recent
    (False, True, True)
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._ids: dict[Any, None] = {}

    def __contains__(self, item: Any) -> bool:
        return item in self._ids

    def add(self, item: Any) -> None:
        """Add an id; forget the oldest one beyond the limit."""
        self._ids[item] = None
        if len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]
