"""Checks of class arguments: each returns the value, or raises ValueError with a sentence about it."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..protocol import Json, JsonObject

Option = TypeVar("Option")


def one_of(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Return `value` if it is one of `allowed`.

    >>> one_of("utility", "EI", ("ei", "ucb"))
    Traceback (most recent call last):
    ValueError: utility must be "ei" or "ucb", not "EI"
    """
    if any(value is option or (type(value) is type(option) and value == option) for option in allowed):
        return value
    raise ValueError(f"{name} must be {' or '.join(map(as_json, allowed))}, not {as_json(value)}")


def loss_sign(optimize_mode: Any) -> float:
    """Return the factor that turns results into losses (the lower, the better).

    >>> loss_sign("minimize"), loss_sign("maximize")
    (1.0, -1.0)
    """
    return -1.0 if one_of("optimize_mode", optimize_mode, ("maximize", "minimize")) == "maximize" else 1.0


def integer(name: str, value: Any, least: int) -> int:
    """Return `value` if it is an integer of at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise ValueError(f"{name} must be an integer of at least {least}, not {as_json(value)}")


def number(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """Return `value` as a float if it is a number from `least` to `most`, and not NaN.

    >>> number("share", 1.5, 0, 1)
    Traceback (most recent call last):
    ValueError: share must be a number from 0 to 1, not 1.5
    """
    if _is_number(value) and least <= value <= most:
        return float(value)
    lower = "" if least == -math.inf else f" of at least {least:g}"
    limits = lower if most == math.inf else f" from {least:g} to {most:g}"
    raise ValueError(f"{name} must be a number{limits}, not {as_json(value)}")


def positive(name: str, value: Any) -> float:
    """Return `value` as a float if it is a finite number above 0."""
    if _is_number(value) and 0 < value < math.inf:
        return float(value)
    raise ValueError(f"{name} must be a number above 0, not {as_json(value)}")


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can hold, not a boolean."""
    if isinstance(value, float):
        return True
    return type(value) is int and abs(value) <= sys.float_info.max


def seed_of(value: Any) -> int | None:
    """Return `value` if it is None or an integer of at least 0."""
    return None if value is None else integer("seed", value, 0)


def optional_mapping(name: str, value: Any) -> JsonObject:
    """Return a copy of `value`, which is a mapping or None."""
    if value is None or isinstance(value, Mapping):
        return dict(value or {})
    raise ValueError(f"{name} must be an object, not {as_json(value)}")


def merged(name: str, defaults: Mapping[str, Json], given: Any) -> JsonObject:
    """Return the defaults, overridden by the given values; unknown keys are errors."""
    overrides = optional_mapping(name, given)
    for key in overrides:
        if key not in defaults:
            raise ValueError(f"{name} has no {key!r}; {hint(str(key), list(defaults))}")
    return {**defaults, **overrides}


def synonym(name: str, value: Any, other_name: str, other: Any) -> Any:
    """Return the given one of two arguments with the same meaning; if both are given they must be equal."""
    if value is not None and other is not None and value != other:
        raise ValueError(
            f"{name} and {other_name} mean the same; they cannot be {as_json(value)} and {as_json(other)}"
        )
    return other if value is None else value


def as_json(value: Any) -> str:
    """Return a value for a message as configs have it: as JSON, where it can be.

    >>> as_json(True), as_json(None), as_json(float("inf"))
    ('true', 'null', 'inf')
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def hint(name: str, accepted: list[str]) -> str:
    """Return the most similar of the accepted names, or all of them."""
    if similar := nearest(name, accepted, 1):
        return f"did you mean {similar[0]!r}?"
    return f"it takes {', '.join(accepted)}" if accepted else "it takes no arguments"


def nearest(name: str, known: list[str], count: int) -> list[str]:
    """Return the most similar of the known names, in any case."""
    import difflib

    by_lower = {key.lower(): key for key in known}
    return [by_lower[key] for key in difflib.get_close_matches(name.lower(), by_lower, count, 0.5)]


def taken(method: Callable[..., Any], options: Mapping[str, Option]) -> Mapping[str, Option]:
    """Return those of the options that a method takes: plug-ins of the first versions of NNI have no `**kwargs`.

    >>> taken(lambda parameter_id: None, {"st_callback": print})
    {}
    """
    code = getattr(method, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return options
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: value for name, value in options.items() if name in names}
