"""A problem of a config with its place, and the error that carries all problems."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..protocol import JsonPath, format_path

MISSING = "required field is missing"
OTHER_NAMES = {
    "max_trials": "max_trial_number",
    "n_trials": "max_trial_number",
    "num_samples": "max_trial_number",
    "timeout": "max_experiment_duration",
    "n_jobs": "trial_concurrency",
    "sampler": "tuner",
    "pruner": "assessor",
}
"""What `minimize`, and other libraries, call the fields at the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem at a path of the config, before its place in a file is known.

    `at_key` points at the key instead of its value; `also` is a second place for the message to name.
    """

    path: JsonPath
    message: str
    hint: str = ""
    at_key: bool = False
    also: JsonPath | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProblem:
    """One problem for the user: file, line and column (from 1, None without a file), path, message, hint.

    >>> str(ConfigProblem(file="a.yml", line=12, column=3, path=("trial_comand",), message="unknown field"))
    'a.yml:12:3: trial_comand: unknown field'
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: JsonPath = ()
    message: str
    hint: str = ""

    @property
    def location(self) -> str:
        """`file:line:column`, or the file alone, or nothing for a config that came from Python."""
        parts = (self.file, self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)

    def __str__(self) -> str:
        name = format_path(self.path)
        # An option that sets a field names it already.
        parts = (self.location, "" if self.location == f"--set {name}" else name, self.message)
        hint = f" ({self.hint})" if self.hint else ""
        return ": ".join(part for part in parts if part) + hint


class ConfigError(ValueError):
    """A config that cannot be used; `problems` lists all its problems, in order of position."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> ConfigError:
        """Return the error of findings in a config that came from no file."""
        return cls([ConfigProblem(path=each.path, message=each.message, hint=each.hint) for each in findings])


def fold(key: str) -> str:
    """Return the common form of all spellings of a field.

    >>> fold("maxTrialNumber") == fold("MAX_TRIAL_NUMBER")
    True
    """
    return key.replace("_", "").lower()


def origin_of(path: JsonPath, origins: Mapping[JsonPath, JsonPath]) -> JsonPath:
    """Return where a path was before it, or one that it begins with, was renamed.

    >>> origin_of(("tuner", "name"), {("tuner",): ("advisor",)})
    ('advisor', 'name')
    """
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]] + path[length:]
    return path


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the one of `words` that `word` probably means, or None.

    >>> nearest("minimise", ["minimize", "maximize"])
    'minimize'
    """
    names = {name.lower(): name for name in words}
    matches = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return names[matches[0]] if matches else None


def did_you_mean(word: object, words: Iterable[str]) -> str:
    """Return a hint with the nearest of `words`, or nothing if none is near."""
    name = nearest(word, words) if isinstance(word, str) else None
    return f"did you mean {name}?" if name else ""
