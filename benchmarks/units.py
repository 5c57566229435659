"""How measured numbers are written."""

from __future__ import annotations

__all__ = ["count", "kib", "mib", "microseconds", "milliseconds", "rate", "seconds"]


def rate(value: float) -> str:
    """Per second."""
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def seconds(value: float) -> str:
    """Of seconds."""
    return f"{value:.2f} s"


def milliseconds(value: float) -> str:
    """Of seconds."""
    return f"{value * 1e3:.3g} ms"


def microseconds(value: float) -> str:
    """Of seconds."""
    return f"{value * 1e6:.0f} us"


def kib(value: float) -> str:
    """Of bytes."""
    return f"{value / 1024:.2f} KiB"


def mib(value: float) -> str:
    """Of bytes."""
    return f"{value / 2**20:.0f} MiB"


def count(value: float) -> str:
    """Of things."""
    return f"{value:.2g}"
