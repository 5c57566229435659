"""Problems of a search space, its points and its constraints.

ValueError
└── SearchSpaceError    the space, the constraints or a point cannot be used; carries every problem found
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..protocol import Path, format_path


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


def nearest(word: object, words: Iterable[str]) -> str:
    """Return a hint that names the most similar of `words`, or an empty string.

    >>> nearest("unifrom", ["uniform", "choice"])
    "did you mean 'uniform'?"
    """
    matches = difflib.get_close_matches(str(word)[:100], list(words), n=1)
    return f"did you mean {matches[0]!r}?" if matches else ""
