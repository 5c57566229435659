"""A limit on how often something may happen."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_PEERS = 1000


class TokenBucket:
    """Allows `per_second` on average, and `at_once` in a burst; `clock` returns seconds.

    >>> now = [0.0]
    >>> bucket = TokenBucket(1.0, 2, lambda: now[0])
    >>> bucket.take(), bucket.take(), bucket.take()
    (True, True, False)
    >>> now[0] = 1.0
    >>> bucket.take()
    True
    """

    def __init__(self, per_second: float, at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._size = float(at_once)
        self._clock = clock
        self._left = self._size
        self._then = clock()

    def take(self) -> bool:
        """Take one; return False when there is none."""
        self.refill()
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    @property
    def is_empty(self) -> bool:
        """Whether there is none at present."""
        self.refill()
        return self._left < 1.0

    def refill(self) -> None:
        """Add what has accumulated since."""
        now = self._clock()
        self._left = min(self._size, self._left + (now - self._then) * self._rate)
        self._then = now


class PeerBuckets:
    """A bucket for each peer, so that one that guesses tokens locks no other out; idle ones are dropped first."""

    def __init__(self, per_second: float, at_once: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._make = lambda: TokenBucket(per_second, at_once, clock)
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def of(self, peer: str) -> TokenBucket:
        """Return the bucket of a peer."""
        bucket = self._buckets.setdefault(peer, self._make())
        self._buckets.move_to_end(peer)
        if len(self._buckets) > _MOST_PEERS:
            self._buckets.popitem(last=False)
        return bucket
