"""Reads a training script, whose facts are found by kind: what it looks up, its command line, its constants."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .absl_scripts import absl_options
from .argparse_scripts import argparse_options
from .class_scripts import class_options
from .click_scripts import click_options, typer_options
from .constant_scripts import constants_of
from .hydra_scripts import hydra_options, omegaconf_options
from .lookups import asks, looked_up
from .script_options import CommandLine, Constants, ScriptOption
from .script_reports import Reports, reports_of
from .script_syntax import Script

# Each knows one kind of command line; the first that finds options counts.
COMMAND_LINES: tuple[Callable[[Script], CommandLine | None], ...] = (
    hydra_options,
    omegaconf_options,
    absl_options,
    class_options,
    typer_options,
    click_options,
    argparse_options,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFacts:
    """What a script uses: `parameters` maps the names that it looks up to their defaults (None: no default).

    `command_line` is what it takes as options, `constants` what its text has instead, which a trial cannot change yet.
    """

    parameters: dict[str, Any]
    command_line: CommandLine
    constants: Constants | None
    reports: Reports
    imports_us: bool
    asks: bool
    modules: frozenset[str] = frozenset()

    @property
    def takes_options(self) -> bool:
        """Whether the script gets its parameters from its command line, and not by a call of Pitchpipe."""
        return (
            bool(self.command_line.options)
            and self.constants is None
            and not self.parameters
            and not self.asks
        )

    @property
    def candidates(self) -> Sequence[ScriptOption]:
        """What could be tuned, of the kind that counts: looked up, constants, or options."""
        if self.parameters:
            options = {option.name: option for option in self.command_line.options}
            return [
                ScriptOption(
                    name=name,
                    default=self.default_of(name) if default is None else default,
                    choices=options[name].choices if name in options else (),
                )
                for name, default in self.parameters.items()
                if not isinstance(default, dict | list | tuple)  # a spec cannot express it
            ]
        return self.command_line.options if self.constants is None else self.constants.options

    @property
    def nested(self) -> Sequence[str]:
        """The parameters that are left out because of what they hold."""
        inside = [name for name, value in self.parameters.items() if isinstance(value, dict | list | tuple)]
        return inside if self.constants is None else [*inside, *self.constants.nested]

    def proposes(self, option: ScriptOption) -> bool:
        """Return whether a candidate is worth tuning, if its name does not speak against it.

        A command line is not the place for booleans: its defaults say what is on. `parse_args` passes them.
        """
        if self.parameters:
            return True
        if self.constants is not None:
            return bool(option.spec)
        passes_booleans = self.asks and option.is_boolean and not option.is_switch
        return option.is_proposed or (passes_booleans and isinstance(option.default, bool))

    def refuses(self, name: str) -> bool:
        """Return whether the script's parser would refuse a parameter; False unless all its options are known."""
        is_complete = self.command_line.is_complete and not self.parameters and self.constants is None
        return is_complete and _folded(name) not in map(_folded, self.option_names)

    @property
    def names(self) -> set[str]:
        """All names that the script knows."""
        return {*self.parameters, *self.option_names, *(option.name for option in self.candidates)}

    @property
    def option_names(self) -> list[str]:
        """The names of the options of the command line."""
        return [option.name for option in self.command_line.options]

    def default_of(self, name: str) -> Any:
        """Return the default of an option; None if the option has none or is unknown."""
        options = self.command_line.options
        return next((option.default for option in options if _folded(option.name) == _folded(name)), None)


def read_script(text: str, folder: Path | None = None) -> ScriptFacts:
    """Read a Python script, and from its folder configs and modules beside it; raise `SyntaxError` if it is not one.

    >>> facts = read_script("p = {'lr': 0.1}; p.update(pitchpipe.get_next_parameter()); print(p['lr'], p['units'])")
    >>> facts.parameters, facts.asks, facts.reports.has_final
    ({'lr': 0.1, 'units': None}, True, False)
    """
    try:
        return _facts_of(Script(ast.parse(text), folder))
    except RecursionError as error:
        raise SyntaxError("it is nested too deeply") from error


def _facts_of(script: Script) -> ScriptFacts:
    parameters, is_asking = looked_up(script), asks(script)
    found = (read(script) for read in COMMAND_LINES)
    command_line = next(filter(None, found), CommandLine(options=(), is_complete=False))
    is_tunable = any(option.is_proposed for option in command_line.options)
    return ScriptFacts(
        parameters=parameters,
        command_line=command_line,
        constants=None if parameters or is_tunable else constants_of(script, asks=is_asking),
        reports=reports_of(script),
        imports_us="pitchpipe" in script.imports,
        asks=is_asking,
        modules=script.modules,
    )


def _folded(name: str) -> str:
    return name.replace("_", "-")
