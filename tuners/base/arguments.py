"""Checks of the arguments of tuners: each returns the value or raises ValueError with a sentence about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def one_of(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Return `value` if it is one of `allowed`.

    >>> one_of("optimize_mode", "minimise", ("minimize", "maximize"))
    Traceback (most recent call last):
    ValueError: optimize_mode must be 'minimize' or 'maximize', not 'minimise'
    """
    if any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        return value
    raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}")


def integer(name: str, value: Any, least: int) -> int:
    """Return `value` if it is an integer of at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise ValueError(f"{name} must be an integer of at least {least}, not {value!r}")


def positive(name: str, value: Any) -> float:
    """Return `value` as a float if it is a finite number above 0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise ValueError(f"{name} must be a number above 0, not {value!r}")


def seed_of(value: Any) -> int | None:
    """Return `value` if it is None or an integer of at least 0."""
    return None if value is None else integer("seed", value, 0)


def merged(name: str, defaults: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Return the defaults overridden by what was given; an unknown key is an error with the nearest one."""
    if given is None:
        return dict(defaults)
    if not isinstance(given, Mapping):
        raise ValueError(f"{name} must be an object, not {given!r}")
    for key in given:
        if key not in defaults:
            raise ValueError(f"{name} has no {key!r}; {_suggestion(str(key), defaults)}")
    return {**defaults, **given}


def _suggestion(key: str, known: Mapping[str, Any]) -> str:
    import difflib

    nearest = difflib.get_close_matches(key, known, 1, 0.5)
    return f"did you mean {nearest[0]!r}?" if nearest else f"it has {', '.join(known)}"
