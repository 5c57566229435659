"""A trial's parameters as command-line arguments, and through argparse parsers."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and scripts import this
if TYPE_CHECKING:
    from argparse import Action, ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence

    from ..protocol import Json, Parameters


def flat_arguments(parameters: Mapping[str, Json]) -> dict[str, Json]:
    """Return the parameters by argument: for a nested choice its option, and beside it the parameters of the option.

    Raises ValueError for two parameters with one name.

    >>> flat_arguments({"model": {"_name": "knn", "k": 7}, "lr": 0.1})
    {'model': 'knn', 'k': 7, 'lr': 0.1}
    """
    flat: dict[str, Json] = {}
    for name, value in parameters.items():
        more = {name: value}
        if isinstance(value, dict) and "_name" in value:
            inner = {key: item for key, item in value.items() if key != "_name"}
            more = {name: value["_name"], **flat_arguments(inner)}
        if twice := flat.keys() & more.keys():
            raise ValueError(
                f"two parameters are called {min(twice)}: as arguments, each needs a name of its own"
            )
        flat |= more
    return flat


def parsed_with(parser: ArgumentParser, arguments: Sequence[str] | None, parameters: Parameters) -> Namespace:
    """Return the parsed `arguments`, with the parameters in place of those that they name.

    Values go through the parser's types and choices, except null, which no word can express. Raises ValueError for a
    parameter that the parser does not have.
    """
    import sys

    words = list(sys.argv[1:] if arguments is None else arguments)
    as_they_are: dict[str, Json] = {}
    for name, value in flat_arguments(parameters).items():
        action = _action(parser, name)
        if not action.option_strings or value is None or _is_beyond_flags(action, value):
            as_they_are[action.dest] = value
        elif action.nargs == 0:
            words += _flag(action, name, value)
        else:
            words += _words(action, value)
    namespace = parser.parse_args(words)
    vars(namespace).update(as_they_are)
    return namespace


def _action(parser: ArgumentParser, name: str) -> Action:
    """Return the parser's argument for a parameter: by its option (`--min-leaf`) or where it is stored (`min_leaf`)."""
    for action in parser._actions:
        if name == action.dest or {f"--{name}", f"-{name}", name} & set(action.option_strings):
            return action
    names = ", ".join(action.dest for action in parser._actions if action.dest != "help")
    raise ValueError(f"the parser has no argument for the parameter {name!r}; it has {names}")


def _is_beyond_flags(action: Action, value: Json) -> bool:
    """Return whether an option that takes no value cannot express this one: a count, or a list of constants."""
    is_count = action.const is None and isinstance(value, int) and not isinstance(value, bool)
    return action.nargs == 0 and (is_count or isinstance(value, list))


def _flag(action: Action, name: str, value: Json) -> list[str]:
    """Return the option that gives a flag this value, if there is one: by its name, or else by what it stores."""
    positive = [spelling for spelling in action.option_strings if not spelling.startswith("--no-")]
    negative = [spelling for spelling in action.option_strings if spelling.startswith("--no-")]
    if positive and negative:  # argparse.BooleanOptionalAction
        return positive[:1] if value else negative[:1]
    is_called = f"--{name.lstrip('-').replace('_', '-')}" in [
        spelling.replace("_", "-") for spelling in action.option_strings
    ]
    is_given = bool(value) if is_called or not isinstance(action.const, bool) else value is action.const
    return list(action.option_strings[:1]) if is_given else []


def _words(action: Action, value: Json) -> list[str]:
    """Return a parameter as words of the command line."""
    option = next((name for name in action.option_strings if name.startswith("--")), action.option_strings[0])
    if action.type is bool and value is False:
        value = ""  # the only text that `bool` takes as false
    if isinstance(value, list) and action.nargs is not None:
        return [option, *map(_positional, value)]
    return [f"{option}={as_word(value)}"]


def _positional(value: Json) -> str:
    """Return a value as a word that argparse does not take for an option: to it, -1e-05 is one and -0.00001 is not."""
    text = as_word(value)
    if isinstance(value, str) or not text.startswith("-") or "e" not in text:
        return text
    from decimal import Decimal

    return format(Decimal(text), "f")


def as_word(value: Json) -> str:
    """Return a value as one word; a whole number has no decimal point, so that `type=int` reads it.

    >>> as_word(32.0), as_word(None), as_word([1, "a"]), as_word("a")
    ('32', 'null', '[1, "a"]', 'a')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value)
