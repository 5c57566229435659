"""JSON documents such as search spaces and points: their problems, and checks, equality and copies of their values.

ValueError
└── SearchSpaceError    the space, the constraints or a point cannot be used; carries every problem found
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

from ..protocol import JsonPath, brief, format_path

MAX_DEPTH = 64  # levels of nesting of lists, objects and choices


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where it is in the JSON document, what it is, and what to do about it.

    >>> print(Problem(("lr", "_value", 1), "'1e-5' is a string", "write 1.0e-5"))
    lr._value[1]: '1e-5' is a string (write 1.0e-5)
    """

    path: JsonPath
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = format_path(self.path)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text} ({self.hint})" if self.hint else text


class SearchSpaceError(ValueError):
    """Raised with all the problems of a search space, of its constraints, or of a point; see `problems`."""

    def __init__(self, problems: Sequence[Problem]):
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def nearest(word: object, words: Iterable[str]) -> str:
    """Return a hint that names the most similar of `words`, or an empty string.

    >>> nearest("unifrom", ["uniform", "choice"])
    "did you mean 'uniform'?"
    """
    matches = difflib.get_close_matches(str(word)[:100], list(words), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def json_problems(value: Any, path: JsonPath, depth: int = 0) -> list[Problem]:
    """Return what in `value` JSON cannot hold; NaN and infinities, which Python writes, are left to `non_finite`."""
    if depth > MAX_DEPTH:
        return [Problem(path, f"nested more than {MAX_DEPTH} levels deep")]
    if isinstance(value, dict):
        problems = [
            Problem(path, f"the key {brief(key)} is not a string")
            for key in value
            if not isinstance(key, str)
        ]
        items = [(key, item) for key, item in value.items() if isinstance(key, str)]
        return problems + [p for key, item in items for p in json_problems(item, (*path, key), depth + 1)]
    if isinstance(value, list | tuple):
        return [p for i, item in enumerate(value) for p in json_problems(item, (*path, i), depth + 1)]
    if value is None or type(value) in (str, bool, int, float):
        return []
    return [Problem(path, f"{brief(value)} ({type(value).__name__}) is not a JSON value", _json_hint(value))]


def _json_hint(value: Any) -> str:
    if hasattr(value, "tolist"):
        return "turn it into plain Python numbers with .tolist()"
    return "use strings, numbers, true, false, null, lists and objects"


def non_finite(value: Any, path: JsonPath = ()) -> list[Problem]:
    """Return where in `value` a number is NaN or infinite: JSON has no such numbers, so no trial could read them.

    >>> print(non_finite({"dropout": [0.5, float("nan")]})[0])
    dropout[1]: JSON has no number nan (write null, or the text "nan", which float() reads)
    """
    if len(path) > 4 * MAX_DEPTH:
        return []  # which is a problem of its own
    if isinstance(value, dict):
        return [p for key, item in value.items() for p in non_finite(item, (*path, str(key)))]
    if isinstance(value, list | tuple):
        return [p for i, item in enumerate(value) for p in non_finite(item, (*path, i))]
    if not isinstance(value, float) or math.isfinite(value):
        return []
    hint = f'write null, or the text "{value}", which float() reads'
    return [Problem(path, f"JSON has no number {value}", hint)]


def plain_copy(value: Any) -> Any:
    """Return a copy of a JSON value, with tuples as lists, that the caller may change."""
    if isinstance(value, dict):
        return {key: plain_copy(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_copy(item) for item in value]
    return value


def identity(value: Any, digits: int | None = None) -> Hashable:
    """Return a hashable that is equal for equal JSON values; true is not 1, 1 is 1.0, NaN is NaN.

    With `digits`, floats count as equal whose first significant digits are.

    >>> identity([1, {"a": None}]) == identity((1.0, {"a": None})), identity(True) == identity(1)
    (True, False)
    """
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value  # nearly always, like floats: a tuner compares thousands of points
    if isinstance(value, float):
        rounded = value if digits is None else float(f"{value:.{digits}g}")
        return rounded if value == value else ("number", "nan")
    if isinstance(value, dict):
        return ("object", frozenset([(key, identity(item, digits)) for key, item in value.items()]))
    if isinstance(value, list | tuple):
        return ("list", tuple([identity(item, digits) for item in value]))
    if isinstance(value, bool | str):
        return (type(value).__name__, value)
    return cast(Hashable, value) if isinstance(value, Real) else ("other", id(value))


def number(value: Any) -> float | int | None:
    """Return `value` as a finite plain int or float, or None if it is not one (a bool is not a number)."""
    if type(value) is float:  # nearly always
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        as_float = float(value)
    except (OverflowError, ValueError):
        return None
    if not math.isfinite(as_float):
        return None
    return value if type(value) is int else as_float
