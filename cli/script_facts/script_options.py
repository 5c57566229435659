"""What a script takes on its command line: its options, and how a trial command passes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .guessed_ranges import guessed_spec, is_setting

# Of several commands, trials run the one whose name says that it trains, or else the first.
_TRAINS = ("train", "fit", "tune", "run", "main")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOption:
    """A parameter of a script, with the default and the values that the script knows.

    `words` are what stands for true and for false on the command line, such as `--fast` and `--no-fast`; the second may
    be empty. Without them a boolean is a value like any other, `--fast=true`. `leads` says that the option stands
    before the name of a command. `low` and `high` are the bounds that the script checks.
    """

    name: str
    default: Any = None
    choices: tuple[Any, ...] = ()
    words: tuple[str, str] | None = None
    dashes: str = "--"
    is_required: bool = False
    leads: bool = False
    low: float | None = None
    high: float | None = None

    @property
    def spec(self) -> str:
        """The range that is proposed for it, in the form of `--param`; empty if there is none."""
        return guessed_spec(self.default, self.choices, self.name, self.low, self.high)

    @property
    def is_boolean(self) -> bool:
        """Whether it is on or off."""
        return isinstance(self.default, bool) or self.words is not None

    @property
    def is_switch(self) -> bool:
        """Whether it can only be given or left out."""
        return self.words is not None and not self.words[1]

    @property
    def is_proposed(self) -> bool:
        """Whether an option of a command line is worth tuning: most texts are paths, and switches turn things on."""
        has_range = bool(self.choices) or not isinstance(self.default, str)
        return has_range and not self.is_boolean and not is_setting(self.name) and bool(self.spec)

    @property
    def fits_args(self) -> bool:
        """Whether `{args}` passes it: as `--NAME=VALUE`, or a switch as `--NAME` for true and as nothing for false."""
        if self.leads or self.dashes != "--":
            return False
        is_off = self.words is not None and self.words[0] == f"--{self.name}" and not self.default
        return is_off or not self.is_boolean

    @property
    def passed(self) -> str:
        """What passes it in a trial command, with the placeholder of its value.

        >>> ScriptOption(name="lr").passed, ScriptOption(name="model.lr", dashes="").passed
        ('--lr={lr}', 'model.lr={model.lr}')
        >>> ScriptOption(name="bias", words=("--bias", "--no-bias")).passed
        '$(test {bias} = true && echo --bias || echo --no-bias)'
        """
        if self.words is None:
            return f"{self.dashes}{self.name}={{{self.name}}}"
        on, off = self.words
        return f"$(test {{{self.name}}} = true && echo {on}{f' || echo {off}' if off else ''})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """What a script takes: options, the name of a `command` before them, and `last`, which each trial needs.

    `needs` are the options and arguments that are required; `is_complete` says that `options` are all that there are.
    `others` are the commands that trials do not run, `notes` what users should know. `of_argparse` says that it is a
    parser.
    """

    options: Sequence[ScriptOption]
    command: str = ""
    others: Sequence[str] = ()
    last: str = ""
    needs: Sequence[str] = ()
    is_complete: bool = True
    of_argparse: bool = False
    notes: Sequence[str] = ()

    def arguments(self, names: Iterable[str], *, with_null: bool = False) -> str:
        """Return the arguments of the trial command that pass these parameters.

        `{args}` passes them all, where it can, and also null, by passing nothing.
        """
        known = {option.name: option for option in self.options}
        are_overrides = any(option.dashes == "" for option in self.options)
        dashes = "++" if are_overrides else "--"  # with `++` an override may be new
        passed = [known.get(name, ScriptOption(name=name, dashes=dashes)) for name in names]
        if not are_overrides and (with_null or all(option.fits_args for option in passed)):
            return " ".join(filter(None, (self.command, "{args}", self.last)))
        before = [option.passed for option in passed if option.leads]
        after = [option.passed for option in passed if not option.leads]
        return " ".join(filter(None, (*before, self.command, *after, self.last)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Values in the text of a script, and the `lines` that have to be added to it for a trial to change them.

    `nested` are the names of values that these lines cannot change.
    """

    options: Sequence[ScriptOption]
    lines: Sequence[str] = ()
    nested: Sequence[str] = ()


Item = TypeVar("Item")


def chosen_command(commands: Sequence[Item], name: Callable[[Item], str]) -> Item:
    """Return the command that trials run.

    >>> chosen_command(["evaluate", "train-model"], str)
    'train-model'
    """
    trains = (command for word in _TRAINS for command in commands if word in name(command).lower())
    return next(trains, commands[0])
