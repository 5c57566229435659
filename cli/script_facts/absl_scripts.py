"""Scripts with flags of absl, also by their names in TensorFlow."""

from __future__ import annotations

import ast

from .script_options import CommandLine, ScriptOption
from .script_syntax import Script, called_name, keyword, plain

_DEFINES = "DEFINE_"
_NUMBERS = {"float": float, "integer": int}
_SCALARS = ("float", "integer", "bool", "boolean", "string", "enum", "enum_class")


def absl_options(script: Script) -> CommandLine | None:
    """Return the flags of a script; None without any. Modules that it imports may define others.

    >>> found = absl_options(Script(ast.parse("flags.DEFINE_float('lr', 1, ''); flags.DEFINE_bool('bias', True, '')")))
    >>> [(option.name, option.default, option.passed) for option in found.options]
    [('lr', 1.0, '--lr={lr}'), ('bias', True, '--bias={bias}')]
    """
    options: list[ScriptOption] = []
    needs: list[str] = []
    for call in script.calls:
        name, kind = called_name(call), called_name(call).removeprefix(_DEFINES)
        if name.startswith("mark_flag"):
            marked = script.value(keyword(call, "flag_name", 0) or keyword(call, "flag_names"))
            needs += [marked] if isinstance(marked, str) else filter(None, marked or ())
        elif name != kind and isinstance(flag := script.value(keyword(call, "name", 0)), str):
            options.append(_option(script, call, flag, kind))
            needs += [flag] if script.value(keyword(call, "required")) is True else []
    return CommandLine(options=options, needs=needs, is_complete=False) if options else None


def _option(script: Script, call: ast.Call, name: str, kind: str) -> ScriptOption:
    """Return a flag; one with several values has no default that could be tuned."""
    if kind not in _SCALARS:
        return ScriptOption(name=name)
    default = plain(script.value(keyword(call, "default", 1)), "name")
    if kind in _NUMBERS and isinstance(default, int | float):
        default = _NUMBERS[kind](default)
    values = {"enum": "enum_values", "enum_class": "enum_class"}.get(kind)
    choices = script.listed(keyword(call, values, 2)) if values is not None else []
    return ScriptOption(
        name=name,
        default=default,
        choices=tuple(plain(choice, "name") for choice in choices),
        low=script.number(keyword(call, "lower_bound")),
        high=script.number(keyword(call, "upper_bound")),
    )
