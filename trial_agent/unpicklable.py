"""Which variable of a user's function cannot be pickled: the errors of pickle name only its type."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["named_culprit"]

_DEEPEST = 8


def named_culprit(value: object, why_not: Callable[[object], Exception | None]) -> str:
    """Return the innermost variable of a value for which `why_not` returns an error, and who uses it; "" if none.

    >>> def train(parameters):
    ...     return parameters["x"] in settings["names"]
    >>> settings = {"names": (name for name in "ab")}
    >>> named_culprit(train, lambda part: None if isinstance(part, str) else TypeError())
    "settings['names']"
    """
    path, seen = "", {id(value)}
    for _ in range(_DEEPEST):
        fresh = ((name, part) for name, part in _parts(value) if id(part) not in seen)
        found = next(((name, part) for name, part in fresh if why_not(part) is not None), None)
        if found is None:
            break
        path, value = path + found[0], found[1]
        seen.add(id(value))
    return path.removeprefix(".")


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    """Yield what is pickled with a value, as one would write it behind the value's name."""
    match value:
        case FunctionType():
            yield from _variables(value)
        case MethodType():
            yield from (("", value.__func__), ("", value.__self__))
        case functools.partial():
            yield from (("", each) for each in (value.func, *value.args))
            yield from ((f".{name}", each) for name, each in value.keywords.items())
        case Mapping():
            yield from ((f"[{name!r}]", each) for name, each in value.items())
        case list() | tuple() | set() | frozenset():
            yield from ((f"[{number}]", each) for number, each in enumerate(value))
        case _:
            yield from ((f".{name}", each) for name, each in dict(getattr(value, "__dict__", {})).items())


def _variables(function: FunctionType) -> Iterator[tuple[str, object]]:
    code, names = function.__code__, dict.fromkeys(_names(function.__code__))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f".{name}", cell.cell_contents
        except ValueError:  # it is not set yet
            continue
    yield from ((f".{name}", function.__globals__[name]) for name in names if name in function.__globals__)
    defaults = function.__defaults__ or ()
    named = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    yield from ((f".{name}", each) for name, each in zip(named, defaults, strict=True))
    yield from ((f".{name}", each) for name, each in (function.__kwdefaults__ or {}).items())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
