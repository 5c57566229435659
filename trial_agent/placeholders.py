"""Fills `{args}` and `{NAME}` in a trial command: the shell then reads exactly the value, or the value is refused."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..protocol import Json, brief
from ..sdk import as_word, flat_arguments
from .shell_patterns import BARE, NEVER, NUMBER, PLAIN
from .shell_placeholders import ONE_WORD, Placeholder, placeholders_of

_PLAIN_OPTION = re.compile(r"--[\w-]+(?:=[\w@%+:./-]*)?", re.ASCII)
_PLAIN_QUOTED = re.compile(r"[\w@%+:=,./ -]*", re.ASCII)
_RESERVED = frozenset(
    (
        *("case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in"),
        *("select", "then", "time", "until", "while"),
    )
)
_EXPANDS_BEFORE = re.compile(r"[$~]\w*$")  # `$HOME` or `~ada`, whose name would grow by the value


class Misfit(ValueError):
    """A value cannot be written where its placeholder stands; `at` is the placeholder's index in the command."""

    def __init__(self, placeholder: Placeholder, why: str, hint: str) -> None:
        self.what = f"{{{placeholder.name}}} at character {placeholder.start + 1} of the command {why}"
        super().__init__(f"{self.what}: {hint}")
        self.at = placeholder.start
        self.hint = hint


def filled(command: str, parameters: Mapping[str, Json]) -> str:
    """Return a command with the values of a trial in place of `{args}` and of `{NAME}`, quoted as their places need.

    `{args}` is `--NAME=VALUE` for each parameter; `--NAME` for true, nothing for false and null. Other braces stay.
    Raises `Misfit`, a ValueError, for a value that the shell would change or execute.

    >>> filled("python train.py {args}", {"lr": 0.1, "units": 32.0, "fast": True, "slow": False})
    'python train.py --lr=0.1 --units=32 --fast'
    >>> filled("./train -l {lr} --run 'of {name}' | awk '{print}'", {"lr": 0.1, "name": "res net"})
    "./train -l 0.1 --run 'of res net' | awk '{print}'"
    """
    if "{" not in command:
        return command
    values = flat_arguments(parameters)
    parts, at = [], 0
    for placeholder in placeholders_of(command, values):
        texts = _options(values) if placeholder.is_all else [as_word(values[placeholder.name])]
        parts += [command[at : placeholder.start], _written(placeholder, texts)]
        at = placeholder.end
    return "".join([*parts, command[at:]])


def misfits(command: str, options: Mapping[str, Iterable[Json]]) -> Iterator[Misfit]:
    """Yield why a placeholder cannot take one of the values of its parameter, once for each placeholder.

    >>> [str(misfit) for misfit in misfits("echo `./train {model}`", {"model": ["plain", "a b"]})]
    ["{model} at character 15 of the command is inside backticks, which would change 'a b': write $( ) in place of ...
    """
    for placeholder in placeholders_of(command, options):
        names = options if placeholder.is_all else [placeholder.name]
        values = [(name, value) for name in names for value in options[name]]
        try:
            for name, value in values:
                _written(placeholder, _options({name: value}) if placeholder.is_all else [as_word(value)])
            if not values:  # some places take nothing at all
                _written(placeholder, [])
        except Misfit as misfit:
            yield misfit


def _written(placeholder: Placeholder, texts: Sequence[str]) -> str:
    """Return the words (one, or those of `{args}`) as the place of a placeholder needs them; raise `Misfit`.

    >>> [_written(placeholder, ["it's"]) for placeholder in placeholders_of('./train {x} "{x}"', ["x"])]
    ['\\'it\\'"\\'"\\'s\\'', '"\\'it\\'"\\'"\\'s\\'"']
    """
    for text in texts:
        _check_characters(placeholder, text)
        _check_line(placeholder, text)
    if placeholder.only is not None:
        return _unchanged(placeholder, texts)
    if placeholder.place == "word":
        return " ".join(_word(placeholder, text) for text in texts)
    if placeholder.is_all:
        if not all(_PLAIN_OPTION.fullmatch(text) for text in texts):
            raise Misfit(placeholder, ONE_WORD, f"write {{{placeholder.name}}} without them")
        return " ".join(texts)
    return _PUT[placeholder.place](placeholder, texts[0])


def _options(values: Mapping[str, Json]) -> list[str]:
    words = []
    for name, value in values.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not False and value is not None:
            words.append(f"--{name}={as_word(value)}")
    return words


def _check_characters(placeholder: Placeholder, text: str) -> None:
    if "\0" in text:
        why = "would have a NUL character, which no argument can have"
        raise Misfit(placeholder, why, "leave it out of the value")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Misfit(
            placeholder, "would have half of a surrogate pair", "leave it out of the value"
        ) from error
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        why = f"would have {error.object[error.start]!r}, which the locale of this process cannot encode"
        raise Misfit(placeholder, why, "set LC_ALL=C.UTF-8") from error


def _unchanged(placeholder: Placeholder, texts: Sequence[str]) -> str:
    """Return texts that nothing on the way reads as more than themselves."""
    only = _PLAIN_OPTION if placeholder.is_all and placeholder.only in (PLAIN, BARE) else placeholder.only
    if only is None or only is NEVER or _EXPANDS_BEFORE.search(placeholder.before):
        raise Misfit(placeholder, placeholder.why, placeholder.hint)
    for text in texts:
        if not text or not only.fullmatch(text):
            raise Misfit(
                placeholder, f"{placeholder.why}, which would change {brief(text)}", placeholder.hint
            )
    if only is NUMBER and texts[0].startswith("-"):
        return f"({texts[0]})"  # `1-{x}` must not become `1--2`
    return " ".join(texts)


def _word(placeholder: Placeholder, text: str) -> str:
    is_safe = (_PLAIN_OPTION if placeholder.is_all else PLAIN).fullmatch(text) and text not in _RESERVED
    # Unquoted, `7>log` redirects descriptor 7, `~root` is a folder, and `..` expands between braces.
    has_neighbour = placeholder.after.startswith(("<", ">")) or _EXPANDS_BEFORE.search(placeholder.before)
    return text if is_safe and not has_neighbour and ".." not in text else _single_quoted(text)


def _single_quoted(text: str) -> str:
    quoted = shlex.quote(text)
    return quoted if quoted != text else f"'{text}'"


def _in_double(placeholder: Placeholder, text: str) -> str:
    """Return a text for double quotes; where it may mean more there, it stands between them in single quotes."""
    # A single backslash in front is literal, but would take the next character with it.
    backslash = "\\" if _ends_in_backslash(placeholder.before) else ""
    if not backslash and _PLAIN_QUOTED.fullmatch(text) and not _EXPANDS_BEFORE.search(placeholder.before):
        return text
    return f'{backslash}"{_single_quoted(text)}"'


def _in_ansi(placeholder: Placeholder, text: str) -> str:
    if not _PLAIN_QUOTED.fullmatch(text) or _ends_in_backslash(placeholder.before):
        raise Misfit(
            placeholder, f"is in $' ', which would change {brief(text)}", f"write '{{{placeholder.name}}}'"
        )
    return text


def _in_here(placeholder: Placeholder, text: str) -> str:
    backslash = "\\" if _ends_in_backslash(placeholder.before) else ""
    if _EXPANDS_BEFORE.search(placeholder.before) and text:
        raise Misfit(
            placeholder, "continues the name of a variable", f"write ${{NAME}}{{{placeholder.name}}}"
        )
    return backslash + re.sub(r"[\\$`]", r"\\\g<0>", text)


_PUT: dict[str, Callable[[Placeholder, str], str]] = {
    "double": _in_double,
    "single": lambda _, text: text.replace("'", "'\"'\"'"),
    "ansi": _in_ansi,
    "here": _in_here,
    "raw": lambda _, text: text,
}


def _check_line(placeholder: Placeholder, text: str) -> None:
    """Raise `Misfit` for a text that could end the here-document around it, or lose its tabs."""
    if not placeholder.is_here:
        return
    ends = placeholder.delimiter is not None and text in placeholder.delimiter
    if ends or "\n" in text or (placeholder.strips_tabs and text.startswith("\t")):
        why = f"is in a here-document, which {brief(text)} would end or change"
        raise Misfit(placeholder, why, "pass it as an argument, in quotes or not")


def _ends_in_backslash(before: str) -> bool:
    """Return whether a backslash that is not itself escaped is the last character."""
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1
