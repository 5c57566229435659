"""Checks of the arguments of assessors: each returns the value or raises ValueError with a sentence about it."""

from __future__ import annotations

import math
from typing import Any


def sign_of(optimize_mode: Any) -> float:
    """Return 1.0 for ``maximize`` and -1.0 for ``minimize``: what makes larger better.

    >>> sign_of("minimise")
    Traceback (most recent call last):
    ValueError: optimize_mode must be 'maximize' or 'minimize', not 'minimise'
    """
    if optimize_mode == "maximize":
        return 1.0
    if optimize_mode == "minimize":
        return -1.0
    raise ValueError(f"optimize_mode must be 'maximize' or 'minimize', not {optimize_mode!r}")


def integer(name: str, value: Any, least: int) -> int:
    """Return `value` if it is an integer of at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")


def number(name: str, value: Any, least: float = -math.inf) -> float:
    """Return `value` as a float if it is a number of at least `least`, and not NaN."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= least:
        return float(value)
    wanted = "a number" if least == -math.inf else f"a number of at least {least:g}"
    raise ValueError(f"{name} must be {wanted}, not {value!r}")


def synonym(name: str, value: Any, other_name: str, other: Any) -> Any:
    """Return the one of two arguments with the same meaning that was given; both given must be equal."""
    if value is not None and other is not None and value != other:
        raise ValueError(f"{name} and {other_name} are the same; they cannot be {value!r} and {other!r}")
    return other if value is None else value
