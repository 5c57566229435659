"""What is wrong with a config, and where: one problem, and the error that carries all of them."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Path = tuple[str | int, ...]
MISSING = "required field is missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at a path of the config, before it is known where in a file that path is.

    `at_key` points at the key instead of its value; `also` is a second place that the message should name.
    """

    path: Path
    message: str
    hint: str = ""
    at_key: bool = False
    also: Path | None = None


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One problem for the user: file, line and column (from 1, None without a file), path, message, hint.

    >>> str(ConfigProblem("a.yml", 12, 3, ("trial_comand",), "unknown field", "did you mean trial_command?"))
    'a.yml:12:3: trial_comand: unknown field (did you mean trial_command?)'
    """

    file: str | None
    line: int | None
    column: int | None
    path: Path
    message: str
    hint: str = ""

    @property
    def location(self) -> str:
        """`file:line:column`, or the file alone, or nothing for a config that came from Python."""
        parts = (self.file, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)

    def __str__(self) -> str:
        parts = (self.location, dotted(self.path), self.message)
        hint = f" ({self.hint})" if self.hint else ""
        return ": ".join(part for part in parts if part) + hint


class ConfigError(ValueError):
    """A config that cannot be used; `problems` lists all that is wrong with it, in order of position."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))


def shown(value: object) -> str:
    """A value in a message: as JSON, not too long.

    >>> shown("2"), shown(None)
    ('"2"', 'null')
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def dotted(path: Path) -> str:
    """The readable form of a path.

    >>> dotted(("search_space", "lr", "_value", 1))
    'search_space.lr._value[1]'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be, or None.

    >>> nearest("minimise", ["minimize", "maximize"])
    'minimize'
    """
    names = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return names[found[0]] if found else None


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """The hint that names the nearest known word; empty when nothing is near."""
    name = nearest(word, known) if isinstance(word, str) else None
    return f"did you mean {name}?" if name else ""
