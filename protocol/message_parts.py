"""The parts of messages to users: values, cut where they are long, numbers, counts, and the paths of values."""

from __future__ import annotations

import json
from typing import TypeAlias

JsonPath: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value in a JSON document."""


def format_path(path: JsonPath) -> str:
    """Return a path as text.

    >>> format_path(("search_space", "lr", "_value", 1))
    'search_space.lr._value[1]'
    """
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def cut(text: str, longest: int) -> str:
    """Return a text of at most so many characters; dots replace the rest.

    >>> cut("abc", 3), cut("abcdefgh", 6)
    ('abc', 'abc...')
    """
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def rounded(number: float) -> str:
    """Return a number in at most six significant digits.

    >>> rounded(0.123456789), rounded(64.0), rounded(1e-7)
    ('0.123457', '64', '1e-07')
    """
    return f"{number:.6g}"


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number and its noun.

    >>> counted(1, "trial"), counted(12000, "trial"), counted(2, "family", "families")
    ('1 trial', '12,000 trials', '2 families')
    """
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def brief_json(value: object) -> str:
    """Return a value as JSON, or as Python has it if it is not JSON, cut to 60 characters.

    >>> brief_json("2"), brief_json(None), brief_json({1})
    ('"2"', 'null', '{1}')
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return cut(text.encode("utf-8", "backslashreplace").decode(), 60)  # half a character has no bytes


def brief(value: object) -> str:
    """Return a value as Python has it, cut to 40 characters.

    >>> brief("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    try:
        return cut(repr(value), 40)
    except (RecursionError, ValueError):  # a cycle, or an integer too long to print
        return f"a value of type {type(value).__name__}"
