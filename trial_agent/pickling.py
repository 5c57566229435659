"""Pickled functions that find their modules as the program did, and whose tracebacks name the user's files.

cloudpickle itself leaves out the names. A module beside the program, or in a folder that the program has added to
`sys.path`, is imported where the function is unpickled: so these folders come first.
"""

from __future__ import annotations

import io
import os
import site
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

from .unpicklable import named_culprit

__all__ = ["pickled"]


def pickled(value: object) -> bytes:
    """Return the user's function, class or object as bytes for `pickle.loads`, which also extends `sys.path`.

    >>> import pickle
    >>> double = eval(compile("lambda x: 2 * x", "/home/ada/train.py", "eval"))
    >>> again = pickle.loads(pickled(double))
    >>> again(4), again.__code__.co_filename
    (8, '/home/ada/train.py')

    Raise `TypeError` with the name of the variable that cannot be sent to another process.
    """
    file = io.BytesIO()
    try:
        _Pickler(file).dump(_Call(_second, _Call(_search, *_own_folders(sys.path)), value))
    except Exception as error:
        name, user = named_culprit(value, _why_not), getattr(value, "__qualname__", type(value).__qualname__)
        what = f"{user} uses {name}, which" if name else user
        raise TypeError(
            f"{what} cannot be sent to another process ({error}): make it in the trial"
        ) from error
    return file.getvalue()


def _why_not(value: object) -> Exception | None:
    """Return the error of pickling a value."""
    try:
        _Pickler(io.BytesIO()).dump(value)
    except Exception as error:  # noqa: BLE001  (reducers are the user's)
        return error
    return None


class _Call:
    """Is pickled as a call; its arguments are unpickled in their order."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._reduced = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._reduced


def _second(_first: object, second: Any) -> Any:
    return second


def _own_folders(path: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return what a program searches before the standard library, and what after it, but for installed packages.

    >>> library = os.path.dirname(os.__file__)
    >>> _own_folders(["/usr", library, *site.getsitepackages(), "/no/such/folder", "/"])
    (['/usr'], ['/'])
    """
    installed = {*site.getsitepackages(), site.getusersitepackages()}
    at = path.index(_LIBRARY) if _LIBRARY in path else 0

    def own(entries: Sequence[str]) -> list[str]:
        folders = [os.path.abspath(entry) for entry in entries if isinstance(entry, str)]
        return [
            folder
            for folder in folders
            if folder not in installed
            and not f"{folder}{os.sep}".startswith(f"{_LIBRARY}{os.sep}")
            and os.path.exists(folder)  # not the names by which editable packages are found
        ]

    return own(path[:at]), own(path[at:])


def _search(before: Sequence[str], after: Sequence[str]) -> None:
    """Search these folders before and after the standard library; what was sent to this node takes precedence."""
    found = [entry for entry in sys.path if entry not in before]
    at = found.index(_LIBRARY) if _LIBRARY in found else 0
    sys.path[:] = [*found[:at], *before, *found[at:], *(entry for entry in after if entry not in found)]


_LIBRARY = os.path.dirname(os.__file__)
_reducers: Any = cloudpickle.Pickler.dispatch_table


def _reduced(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    make, arguments = _reducers[CodeType](code)
    return _of_file, (code.co_filename, make, arguments)


def _of_file(name: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    return make(*arguments).replace(co_filename=name)


class _Pickler(cloudpickle.Pickler):
    dispatch_table: ClassVar[Any] = ChainMap({CodeType: _reduced}, _reducers)
