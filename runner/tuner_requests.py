"""The requests for trials that the tuner has not replied to yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any


class TunerRequests:
    """The open requests for trials, in the order in which they were sent.

    `has_more` is False after the tuner had nothing to propose, and `why_no_more` is the reason if one was given.
    `has_news` says whether it received anything since the last request, so that it may have something to propose now.

    >>> requests = TunerRequests()
    >>> requests.ask(2); requests.ask(1); requests.total
    3
    >>> requests.fulfil_one(); requests.exhausted(); requests.total, requests.has_more
    (1, False)
    """

    def __init__(self) -> None:
        self.has_more = True
        self.why_no_more = ""
        self.has_news = False
        self._asked: deque[int] = deque()  # how many trials each request still waits for

    @property
    def total(self) -> int:
        """How many trials are requested and neither proposed nor declined."""
        return sum(self._asked)

    def ask(self, count: int) -> None:
        """Note a request."""
        self._asked.append(count)
        self.has_news = False

    def fulfil_one(self) -> None:
        """Note a proposal, whether or not it is used."""
        if self._asked:
            self._asked[0] -= 1
            if self._asked[0] == 0:
                self._asked.popleft()

    def exhausted(self, reason: str = "") -> None:
        """Note that the tuner has nothing more: the first request is closed, later ones stay open."""
        self.why_no_more = reason
        if self._asked:
            self._asked.popleft()
        self.has_more = False

    @property
    def may_ask_again(self) -> bool:
        """Whether no request is open, and the tuner has received something since the last one."""
        return not self._asked and self.has_news

    def merge(self) -> None:
        """Merge all open requests into one."""
        self._asked = deque([self.total] if self._asked else [])

    def snapshot(self) -> dict[str, Any]:
        """Return what a resumed runner needs, as plain JSON values."""
        return {"asked": list(self._asked), "tuner_has_more": self.has_more}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Restore what `snapshot` returned."""
        self._asked = deque(snapshot.get("asked", ()))
        self.has_more = snapshot.get("tuner_has_more", True)
