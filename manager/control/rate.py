"""How fast trials end, and how long the experiment still takes."""

from __future__ import annotations

from collections import deque

__all__ = ["RateMeter", "forecast"]

# The throughput is that of the last minute.
_WINDOW = 60.0


class RateMeter:
    """Measures trials per second."""

    def __init__(self) -> None:
        self._ends: deque[tuple[float, int]] = deque()

    def note(self, now: float, finished: int) -> None:
        """Note how many trials have ended; `now` is in seconds."""
        ends = self._ends
        if not ends or finished != ends[-1][1]:
            ends.append((now, finished))
        while len(ends) > 2 and ends[1][0] < now - _WINDOW:
            ends.popleft()

    def rate(self, now: float) -> float | None:
        """Return the trials per second; None until two have ended at different times."""
        if not self._ends:
            return None
        (first_time, first), (last_time, last) = self._ends[0], self._ends[-1]
        if last == first or now <= first_time:
            return None
        # Until now only if the next end is overdue: otherwise the rate would sag between two ends.
        mean = (last_time - first_time) / (last - first)
        return (last - first) / max(last_time - first_time, now - first_time - mean, 1e-9)


def forecast(
    *, total: int | None, finished: int, rate: float | None, elapsed: float, longest: float | None
) -> tuple[float | None, bool]:
    """Return the seconds left, if known, and whether they are only the bound of `longest` seconds in all.

    >>> forecast(total=10, finished=4, rate=2.0, elapsed=5.0, longest=60.0)
    (3.0, False)
    >>> forecast(total=None, finished=4, rate=2.0, elapsed=5.0, longest=60.0)
    (55.0, True)
    """
    left = [max(0, total - finished) / rate] if total is not None and rate else []
    is_bound = not left and longest is not None
    if longest is not None:
        left.append(max(0.0, longest - elapsed))
    return min(left, default=None), is_bound
