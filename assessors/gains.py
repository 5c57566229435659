"""Results as gains, the larger the better, and in sentences."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from typing import Any

from ..protocol import metric_value


def gain_of(value: Any, sign: float, name: str = "default") -> float:
    """Return a reported value as a number, the larger the better; NaN becomes the worst."""
    gain = sign * metric_value(value, name)
    return -math.inf if math.isnan(gain) else gain


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "result"), counted(2, "result")
    ('1 result', '2 results')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class GainReader:
    """Reads the gain in reports of the objective `name`; `sign` is 1 to maximize, -1 to minimize."""

    def __init__(self, sign: float, name: str = "default") -> None:
        self._sign, self._name = sign, name

    def check(self, report: Any) -> None:
        """Raise `MetricError` for a report that is not a number."""
        metric_value(report, self._name)

    def read(self, history: Sequence[Any], place: int) -> float:
        """Return the gain of a trial at a place of its history."""
        return gain_of(history[place], self._sign, self._name)

    def shown(self, gain: float) -> str:
        """Return a gain as the reported value."""
        return "no number" if gain == -math.inf else f"{self._sign * gain + 0.0:.6g}"


class Gains:
    """The gains of trials after the same number of results, ascending."""

    def __init__(self) -> None:
        self._gains = array("d")

    def __len__(self) -> int:
        return len(self._gains)

    def add(self, gain: float) -> None:
        """Add a gain."""
        insort(self._gains, gain)

    def remove(self, gain: float) -> None:
        """Remove a gain that was added."""
        del self._gains[bisect_left(self._gains, gain)]

    def better(self, gain: float) -> int:
        """Return how many are larger."""
        return len(self._gains) - bisect_right(self._gains, gain)

    @property
    def median(self) -> float:
        """The lower of the two middle values."""
        return self._gains[(len(self._gains) - 1) // 2]
