"""Results as gains, the larger the better, and in sentences."""

from __future__ import annotations

import math
from typing import Any

from ..protocol import metric_value

__all__ = ["counted", "gain_of"]


def gain_of(value: Any, sign: float) -> float:
    """Return a reported value as a number, the larger the better; NaN becomes the worst."""
    gain = sign * metric_value(value)
    return -math.inf if math.isnan(gain) else gain


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "result"), counted(2, "result")
    ('1 result', '2 results')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
