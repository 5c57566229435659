"""Answers that are worked out once for all who ask the same, and again only when the store has changed.

Fifty clients that poll cost one reader: a kept answer is given without looking at the store for a quarter of a second
(longer if it took long to make), then as long as the database's version is the same. Answers are JSON text with a tag,
so that who has it is told nothing new.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..store.reading import to_json

__all__ = ["Answer", "Answers"]

_FRESH = 0.25
# A question that is asked all the time costs at most a tenth of the time, but for answers that take very long.
_COST = 10.0
_STALEST = 3.0
_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON text, and what tells it from others."""

    body: bytes
    tag: str


@dataclass(slots=True)
class _Kept:
    """One answer: made of a version of the database, looked after at a time; the lock is held while it is made."""

    lock: threading.Lock
    answer: Answer | None = None
    version: int = -1
    made: float = 0.0
    fresh: float = 0.0
    looked: float = 0.0


class Answers:
    """The answers about one experiment; thread-safe. `clock` gives seconds."""

    def __init__(self, version: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._version = version
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._size = 0

    def answer(self, key: Hashable, work_out: Callable[[], Any], lasting: float = float("inf")) -> Answer:
        """The answer to the question that `key` stands for; `work_out` gives its value.

        After `lasting` seconds it is worked out anew in any case: some of it is not in the store.
        """
        with self._lock:
            kept = self._kept.setdefault(key, _Kept(threading.Lock()))
            self._kept.move_to_end(key)
        with kept.lock:
            now = self._clock()
            if kept.answer is not None and now - kept.made < lasting:
                if now - kept.looked < kept.fresh:
                    return kept.answer
                kept.looked = now
                if self._version() == kept.version:
                    return kept.answer
            version = self._version()
            body = to_json(work_out())
            answer = Answer(body, hashlib.blake2b(body, digest_size=12).hexdigest())
            before = 0 if kept.answer is None else len(kept.answer.body)
            kept.answer, kept.version = answer, version
            kept.made = kept.looked = done = self._clock()
            kept.fresh = min(max(_FRESH, _COST * (done - now)), _STALEST)
        self._make_room(len(body) - before)
        return answer

    def _make_room(self, more: int) -> None:
        """Forget what was not asked for the longest time."""
        with self._lock:
            self._size += more
            while self._size > _MOST_BYTES and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._size -= 0 if oldest.answer is None else len(oldest.answer.body)
