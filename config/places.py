"""From a path of the config to file, line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .problems import ConfigProblem, Finding, Path, dotted
from .source import Source

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class Places:
    """The files of a config; both are None for a config from Python, whose problems have only a path."""

    main: Source | None = None
    space: Source | None = None

    def problems(self, findings: Iterable[Finding]) -> list[ConfigProblem]:
        """Return the findings (at the user's paths) with their positions, in order, each once."""
        found = list(findings)
        own = [] if self.main is None else self.main.problems
        space = [] if self.space is None else self.space.problems
        inside = [replace(problem, path=("search_space", *problem.path)) for problem in space]
        return self.ordered([*own, *inside, *map(self._locate, found)])

    def ordered(self, problems: Iterable[ConfigProblem]) -> list[ConfigProblem]:
        """Return problems without repetitions, those of the main file first, from top to bottom."""
        main = self.main.file if self.main else None
        return sorted(
            dict.fromkeys(problems), key=lambda p: (p.file != main, p.file or "", p.line or 0, p.column or 0)
        )

    def named(self, path: Path) -> str:
        """Return a path as the file writes it, with its line, for a sentence."""
        line = self._position(path, True)[1]
        return dotted(path) + (f" (line {line})" if line else "")

    def _locate(self, finding: Finding) -> ConfigProblem:
        message = finding.message
        if finding.also is not None:
            message += f" {self.named(finding.also)}"
        file, line, column = self._position(finding.path, finding.at_key)
        return ConfigProblem(
            file=file, line=line, column=column, path=finding.path, message=message, hint=finding.hint
        )

    def _position(self, path: Path, at_key: bool) -> tuple[str | None, int | None, int | None]:
        if self.space is not None and path[:1] == ("search_space",):
            return (self.space.file, *self.space.position(path[1:], at_key))
        if self.main is None:
            return (None, None, None)
        for length in range(len(path), 0, -1):
            if path[:length] in self.main.overridden:
                return (self.main.overridden[path[:length]], None, None)
        return (self.main.file, *self.main.position(path, at_key))
