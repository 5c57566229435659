"""The files of a config: values in place of those in a file (`tuner.class_args.seed=7`), and the places of problems."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..protocol import JsonPath, format_path
from .problems import ConfigError, ConfigProblem, Finding, fold
from .source import Source, parse_source, read_source

_OPTION = "--set"
_ALGORITHMS = ("tuner", "assessor", "advisor")
_SPACE = "search_space"


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """The files of a config; both are None for a config from Python, whose problems have only a path."""

    main: Source | None = None
    space: Source | None = None

    def problems(self, findings: Iterable[Finding]) -> list[ConfigProblem]:
        """Return the findings (at the user's paths) with their positions, in order, each once."""
        of_main = [] if self.main is None else self.main.problems
        of_space = [] if self.space is None else self.space.problems
        inside = [replace(problem, path=("search_space", *problem.path)) for problem in of_space]
        return self.ordered([*of_main, *inside, *map(self._locate, findings)])

    def ordered(self, problems: Iterable[ConfigProblem]) -> list[ConfigProblem]:
        """Return problems without repetitions, those of the main file first, from top to bottom."""
        main = self.main.file if self.main else None
        return sorted(
            dict.fromkeys(problems), key=lambda p: (p.file != main, p.file or "", p.line or 0, p.column or 0)
        )

    def named(self, path: JsonPath) -> str:
        """Return a path as the file writes it, with its line, for a sentence."""
        line = self._position(path, True)[1]
        return format_path(path) + (f" (line {line})" if line else "")

    def _locate(self, finding: Finding) -> ConfigProblem:
        message = finding.message
        if finding.also is not None:
            message += f" {self.named(finding.also)}"
        file, line, column = self._position(finding.path, finding.at_key)
        return ConfigProblem(
            file=file, line=line, column=column, path=finding.path, message=message, hint=finding.hint
        )

    def _position(self, path: JsonPath, at_key: bool) -> tuple[str | None, int | None, int | None]:
        if self.space is not None and path[:1] == ("search_space",):
            return (self.space.file, *self.space.position(path[1:], at_key))
        if self.main is None:
            return (None, None, None)
        for length in range(len(path), 0, -1):
            if path[:length] in self.main.overridden:
                return (self.main.overridden[path[:length]], None, None)
        return (self.main.file, *self.main.position(path, at_key))


def read_overridden(file: str | os.PathLike[str], overrides: Sequence[str]) -> Source:
    """Read a config file and set some of its values, given as `KEY=VALUE`; raise `ConfigError`.

    KEY has dots between its steps, and a number for an item of a list; VALUE is YAML. Keys of the file may be spelled
    in another way, as in the file.
    """
    source = read_source(file)
    for text in overrides:
        _set(source, text)
    return source


def _set(source: Source, text: str) -> None:
    key, equals, value_text = text.partition("=")
    steps = key.split(".")
    if not equals or not all(steps):
        raise _error(text, "is not KEY=VALUE", "such as --set max_trial_number=5 or --set tuner.name=TPE")
    # A leading > means a limit here, not the text of several lines that it begins in YAML.
    value_text = json.dumps(value_text) if value_text.startswith(">") else value_text
    value = parse_source(value_text, f"{_OPTION} {text}")
    if value.problems:
        raise ConfigError(value.problems)
    if source.data is None:
        source.data = {}
    holder, path = source.data, ()
    for step in steps[:-1]:
        holder, path = _entered(holder, path, step, text)
        if not holder:  # nothing of it is in the file
            source.overridden[path] = f"{_OPTION} {key}"
    last = _spelled(holder, path, steps[-1], text)
    holder[last] = value.data
    source.overridden[(*path, last)] = f"{_OPTION} {key}"


def _entered(holder: Any, path: JsonPath, step: str, text: str) -> tuple[Any, JsonPath]:
    """Return the value at a step and its path; make a mapping where there is nothing yet."""
    name = _spelled(holder, path, step, text)
    inner = holder[name] if isinstance(name, int) else holder.get(name)
    if inner is None:
        inner = {}
    elif isinstance(inner, str) and not path and fold(step) in _ALGORITHMS:
        inner = {"name": inner}  # `tuner: TPE` is short for that
    holder[name] = inner
    return inner, (*path, name)


def _spelled(holder: Any, path: JsonPath, step: str, text: str) -> Any:
    """Return the key of a mapping, or the index of a list, that a step means."""
    if isinstance(holder, list):
        if step.isdecimal() and int(step) < len(holder):
            return int(step)
        raise _error(text, f"there is no item {step}", f"the list has {len(holder)}, counted from 0")
    if not isinstance(holder, dict):
        raise _error(text, f"{'.'.join(map(str, path)) or 'the file'} is not a mapping, and has no {step}")
    is_exact = bool(path) and fold(str(path[0])) == fold(_SPACE)
    same = [key for key in holder if key == step or (not is_exact and fold(key) == fold(step))]
    return same[0] if same else step


def _error(text: str, message: str, hint: str = "") -> ConfigError:
    return ConfigError([ConfigProblem(file=f"{_OPTION} {text}", message=message, hint=hint)])
