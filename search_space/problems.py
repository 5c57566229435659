"""Problems of a search space, its points and its constraints.

ValueError
└── SearchSpaceError    the space, the constraints or a point cannot be used; carries every problem found
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
_HUGE = 1e300  # no end of a range that anybody means


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: where it is in the JSON document, what it is, and what to do about it.

    >>> print(Problem(("lr", "_value", 1), "'1e-5' is a string", "write 1.0e-5"))
    lr._value[1]: '1e-5' is a string (write 1.0e-5)
    """

    path: Path
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


def format_path(path: Path) -> str:
    """Return a path as text.

    >>> format_path(("layer", "_value", 0, "kernel"))
    'layer._value[0].kernel'
    """
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def nearest(word: object, words: Iterable[str]) -> str:
    """Return a hint that names the most similar of `words`, or an empty string.

    >>> nearest("unifrom", ["uniform", "choice"])
    "did you mean 'uniform'?"
    """
    matches = difflib.get_close_matches(str(word)[:100], list(words), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""


def spec_hint(spec: object) -> str:
    """Return what to write in place of a parameter that is not an object.

    >>> spec_hint(["relu", "tanh"])
    'for one of these options write {"_type": "choice", "_value": [...]}, in Python pitchpipe.choice([...])'
    """
    if isinstance(spec, list | tuple):
        if len(spec) == 2 and all(type(end) in (int, float) and abs(end) < _HUGE for end in spec):
            low, high = sorted(spec)
            spelled = f'{{"_type": "uniform", "_value": [{low}, {high}]}}, in Python pitchpipe.uniform({low}, {high})'
            return f'for a range write {spelled}; for two options "choice"'
        return 'for one of these options write {"_type": "choice", "_value": [...]}, in Python pitchpipe.choice([...])'
    if spec is None:
        return 'for a constant write {"_type": "choice", "_value": [null]}'
    return ""


def show(value: Any) -> str:
    """Return a short `repr` of a value, for a message.

    >>> show("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # a cycle, or an integer too long to print
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."
