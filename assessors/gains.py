"""Results as gains: the larger the better."""

from __future__ import annotations

import math
from typing import Any

from ..protocol import metric_value

__all__ = ["gain_of"]


def gain_of(value: Any, sign: float) -> float:
    """Return a reported value as a number, the larger the better; NaN becomes the worst."""
    gain = sign * metric_value(value)
    return -math.inf if math.isnan(gain) else gain
