"""A cache of responses: each is computed once for all clients, and again only when the store has changed.

Fifty polling clients cost one reader: a cached response is returned without checking the store for a quarter of a
second (longer if it took long to compute), then as long as the version of the database stays the same. Responses are
JSON text with a tag, so that a client that has one need not receive it again.
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

_FRESH = 0.25
# A constantly requested response costs at most a tenth of the time, unless it takes very long to compute.
_COST = 10.0
_STALEST = 3.0
_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """The JSON text of a response, and its tag."""

    body: bytes
    tag: str


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A cached response with the database version it comes from; the lock is held while it is computed."""

    lock: threading.Lock
    response: CachedResponse | None = None
    version: int = -1
    made: float = 0.0
    fresh: float = 0.0
    checked: float = 0.0


class ResponseCache:
    """The responses about one experiment; thread-safe. `clock` returns seconds."""

    def __init__(self, version: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._version = version
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, compute: Callable[[], Any], lasting: float = float("inf")) -> CachedResponse:
        """Return the response for `key`, from the cache or computed by `compute`.

        After `lasting` seconds it is computed again in any case: parts of it are not in the store.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry(lock=threading.Lock()))
            self._entries.move_to_end(key)
        with entry.lock:
            now = self._clock()
            if entry.response is not None and now - entry.made < lasting:
                if now - entry.checked < entry.fresh:
                    return entry.response
                entry.checked = now
                if self._version() == entry.version:
                    return entry.response
            version = self._version()
            body = to_json(compute())
            response = CachedResponse(body, hashlib.blake2b(body, digest_size=12).hexdigest())
            before = 0 if entry.response is None else len(entry.response.body)
            entry.response, entry.version = response, version
            entry.made = entry.checked = done = self._clock()
            entry.fresh = min(max(_FRESH, _COST * (done - now)), _STALEST)
        self._evict(len(body) - before)
        return response

    def _evict(self, more: int) -> None:
        """Drop the least recently used responses until the rest fits."""
        with self._lock:
            self._size += more
            while self._size > _MOST_BYTES and len(self._entries) > 1:
                _, oldest = self._entries.popitem(last=False)
                self._size -= 0 if oldest.response is None else len(oldest.response.body)
