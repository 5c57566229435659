"""What the code of a trial that is a Python function was, as a digest by which other code is told apart."""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import CodeType, FunctionType, MethodType

from ..sdk import file_digest

# Of what a function uses; a program's tables of data would take seconds. A text counts up to as many letters.
_MOST = 20_000


def function_files(function: Callable[..., object], code_directory: Path) -> dict[str, str]:
    """Return the digest of the file that a function or class came from, by its path in the code directory.

    One from the program itself, or from a notebook, is pickled without its file, which may start the experiment as
    well. It has a digest of its own code, and of what that uses: functions, classes and plain values of the program.

    >>> function_files(len, Path("/"))
    {}
    """
    bound: list[object] = []
    while isinstance(function, partial):
        bound += [function.args, function.keywords]
        function = function.func
    owner = inspect.unwrap(function) if callable(function) else function
    if not (inspect.isroutine(owner) or inspect.isclass(owner)):
        owner = type(owner)
    file = getattr(sys.modules.get(owner.__module__ or ""), "__file__", None)
    if owner.__module__ != "__main__" and file is not None and (digest := file_digest(file)) is not None:
        with suppress(OSError):  # the working directory was deleted
            file = os.path.abspath(file)
        path = Path(file)
        inside = path.is_relative_to(code_directory)
        return {str(path.relative_to(code_directory) if inside else path): digest}
    if not (inspect.isfunction(owner) or inspect.ismethod(owner) or inspect.isclass(owner)):
        return {}
    return {f"{owner.__qualname__}()": _CodeDigest(owner.__module__).of(owner, bound)}


class _CodeDigest:
    """Makes the digest of objects of one module: their code, and what the code names, as far as the module defines it.

    What is to be added waits in a list, last in, first out: data may be nested deeper than Python calls functions.
    """

    def __init__(self, module: str | None, seen: Iterable[int] = ()) -> None:
        self._module = module
        self._digest = blake2b(digest_size=8)
        self._seen = {*seen}
        self._waiting: list[object] = []

    def of(self, *values: object) -> str:
        """Return the digest of these values, and of what they use."""
        self._waiting += values
        for _ in range(_MOST):
            if not self._waiting:
                break
            self._add(self._waiting.pop())
        return self._digest.hexdigest()

    def _add(self, value: object) -> None:
        """Add a function, a class or a plain value; anything else, such as a module or an array, does not count."""
        if isinstance(value, staticmethod | classmethod | MethodType):
            value = value.__func__
        if callable(value) and not isinstance(value, type):
            value = inspect.unwrap(value)
        if isinstance(value, list | dict):
            if id(value) in self._seen:
                return  # it may contain itself
            self._seen.add(id(value))
        if isinstance(value, property):
            self._waiting += (value.fget, value.fset, value.fdel)
        elif isinstance(value, FunctionType | type):
            self._add_definition(value)
        elif isinstance(value, CodeType):
            self._add_code(value)
        elif isinstance(value, list | tuple):
            self._say(f"{type(value).__name__} {len(value)}")
            self._waiting += islice(value, _MOST)
        elif isinstance(value, dict):
            self._say(f"dict {len(value)}")
            self._waiting += islice(value.items(), _MOST)
        elif isinstance(value, set | frozenset):
            self._add_set(value)
        elif isinstance(value, str | bytes):
            self._say(f"{len(value)} {value[:_MOST]!r}")
        elif value is None or isinstance(value, int | float | complex):
            self._say(repr(value))

    def _add_set(self, values: set[object] | frozenset[object]) -> None:
        """Add the digest of each element, sorted: the order of a set differs from process to process."""
        several = values if len(values) <= _MOST else ()
        parts = (_CodeDigest(self._module, self._seen).of(value) for value in several)
        self._say(" ".join([f"set {len(values)}", *sorted(parts)]))

    def _add_definition(self, value: FunctionType | type) -> None:
        """Add a function or a class, unless another module defines it, whose file is noted when a trial loads it."""
        self._say(value.__qualname__)
        if value.__module__ != self._module or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, type):
            self._waiting += value.__bases__
            members = vars(value).items()
            self._waiting += [
                (name, one) for name, one in members if not name.startswith("__") or callable(one)
            ]
            return
        self._add_code(value.__code__)
        self._waiting += (value.__defaults__, value.__kwdefaults__)
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # it is empty
                self._waiting.append(cell.cell_contents)
        for name in sorted(_global_names(value.__code__)):
            if name in value.__globals__:
                self._say(name)
                self._waiting.append(value.__globals__[name])

    def _add_code(self, code: CodeType) -> None:
        self._digest.update(code.co_code)
        self._waiting += code.co_consts
        self._say(" ".join(code.co_names))

    def _say(self, text: str) -> None:
        self._digest.update(f"{text}\0".encode("utf-8", "surrogatepass"))


def _global_names(code: CodeType) -> set[str]:
    """Return the names that code, and the functions in it, may take from the module."""
    inner = [_global_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*inner)
