"""Parses durations, memory sizes and GPU indices as users write them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from .problems import shown

__all__ = ["UnitError", "parse_duration", "parse_gpu_indices", "parse_memory"]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}
_WORDS = {
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hr": "h",
    "hour": "h",
    "day": "d",
    "byte": "b",
    "k": "kb",
    "m": "mb",
    "g": "gb",
    "t": "tb",
    "kib": "kb",
    "mib": "mb",
    "gib": "gb",
    "tib": "tb",
}
_QUANTITY = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", re.IGNORECASE | re.ASCII)
_BARE_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)\s*", re.ASCII)


class UnitError(ValueError):
    """A value that is not a quantity of its kind; `hint` says how to write one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message.encode("utf-8", "backslashreplace").decode())  # pydantic takes no other text
        self.hint = hint

    def with_hint(self) -> str:
        """Return the message and, in brackets, the hint."""
        return f"{self} ({self.hint})" if self.hint else str(self)


def parse_duration(value: Any) -> float:
    """Return the seconds of a duration: a number of seconds, or text with the unit s, m, h or d.

    Raises `UnitError`.

    >>> parse_duration("1.5h"), parse_duration(90)
    (5400.0, 90.0)
    """
    hint = "a number of seconds, or text such as 30s, 10m, 1.5h, 2d"
    if isinstance(value, str) and _BARE_NUMBER.fullmatch(value):
        number = value.strip()
        raise UnitError(
            f"{shown(value)} has no unit", f"write {number} without quotes for seconds, or {number}s"
        )
    return _finite(_quantity(value, _SECONDS, "a duration", hint), value, "a duration", hint)


def parse_memory(value: Any) -> int:
    """Return the bytes of a memory size: a whole number, or text in b, kb, mb, gb or tb (powers of 1024).

    Raises `UnitError`.

    >>> parse_memory("4gb"), parse_memory("1.5 KB")
    (4294967296, 1536)
    """
    hint = "text such as 512mb, 4gb, or a whole number of bytes"
    if isinstance(value, float):
        raise UnitError(f"must be a memory size, not {shown(value)}", hint)
    return math.ceil(_finite(_quantity(value, _BYTES, "a memory size", hint), value, "a memory size", hint))


def parse_gpu_indices(value: Any) -> tuple[int, ...]:
    """Return GPU indices from one index, text such as "0,1", or a list; raises `UnitError`.

    >>> parse_gpu_indices("0, 2"), parse_gpu_indices(1)
    ((0, 2), (1,))
    """
    hint = 'an index, a list of them, or text such as "0,1"'
    indices = _split(value)
    if not indices or not all(isinstance(index, int) and not isinstance(index, bool) for index in indices):
        raise UnitError(f"must be GPU indices, not {shown(value)}", hint)
    if min(indices) < 0:
        raise UnitError(f"GPU index {min(indices)} is negative", hint)
    if len(set(indices)) < len(indices):
        raise UnitError(f"names a GPU twice: {shown(value)}", hint)
    return tuple(indices)


def _quantity(value: Any, units: dict[str, int], noun: str, hint: str) -> float | int:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(match[2].lower()) if match else None
    if match is None or unit is None:
        meant = _written_out(match, units)
        raise UnitError(f"must be {noun}, not {shown(value)}", f"did you mean {meant}?" if meant else hint)
    return float(match[1]) * unit


def _written_out(match: re.Match[str] | None, units: dict[str, int]) -> str:
    """Return the accepted form of a quantity whose unit is a word, or nothing.

    >>> _written_out(_QUANTITY.fullmatch("2 hours"), _SECONDS)
    '2h'
    """
    meant = _WORDS.get(match[2].lower().removesuffix("s")) if match else None
    return f"{match[1]}{meant}" if match and meant in units else ""


def _finite(number: float | int, value: Any, noun: str, hint: str) -> float:
    # float() of a huge int overflows: both ends of the range get the same sentence.
    try:
        amount = float(number)
    except OverflowError:
        amount = math.inf
    if not math.isfinite(amount):
        raise UnitError(f"must be {noun}, not {shown(value)}", hint)
    if amount < 0:
        raise UnitError(f"must not be negative, but is {shown(value)}", hint)
    return amount


def _split(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")]
        return [int(part) if re.fullmatch(r"-?[0-9]{1,9}", part) else part for part in parts]
    return value if isinstance(value, list | tuple) else [value]
