"""What the tuner was asked for and has not answered yet. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

__all__ = ["TunerRequests"]


class TunerRequests:
    """The unanswered requests for trials, in the order in which they were sent.

    `has_more` is False after the tuner has said that it has nothing to propose; `has_news` says whether it was told
    something since it was last asked, so that it may have changed its mind.

    >>> requests = TunerRequests()
    >>> requests.ask(2); requests.ask(1); requests.total
    3
    >>> requests.answered(); requests.exhausted(); requests.total, requests.has_more
    (1, False)
    """

    def __init__(self) -> None:
        self.has_more = True
        self.has_news = False
        self._asked: deque[int] = deque()  # how many trials each still waits for

    @property
    def total(self) -> int:
        """How many trials are asked for and not answered about."""
        return sum(self._asked)

    def ask(self, count: int) -> None:
        """Note a request."""
        self._asked.append(count)
        self.has_news = False

    def answered(self) -> None:
        """One trial has come, or one suggestion that is not used."""
        if self._asked:
            self._asked[0] -= 1
            if self._asked[0] == 0:
                self._asked.popleft()

    def exhausted(self) -> None:
        """The tuner has nothing more: that answers one request, also in part; later ones stay."""
        if self._asked:
            self._asked.popleft()
        self.has_more = False

    @property
    def may_ask_again(self) -> bool:
        """After a no: has everything been answered, and was something told after the last request?"""
        return not self._asked and self.has_news

    def merge(self) -> int:
        """Make one request of all, for a dispatcher that is asked anew; answers its size."""
        total = self.total
        self._asked = deque([total] if total else [])
        return total

    def snapshot(self) -> dict[str, Any]:
        """Return what a resumed runner needs, as plain JSON values."""
        return {"asked": list(self._asked), "tuner_has_more": self.has_more}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take up what `snapshot` gave."""
        self._asked = deque(snapshot.get("asked", ()))
        self.has_more = snapshot.get("tuner_has_more", True)
