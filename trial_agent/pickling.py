"""Pickled functions that find their modules as the program did, and whose tracebacks name the user's files.

cloudpickle itself leaves out the names. A module beside the program, or in a folder that the program has added to
`sys.path`, is imported where the function is unpickled: so these folders come first.
"""

from __future__ import annotations

import functools
import io
import os
import re
import site
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, ClassVar

import cloudpickle


def pickled(value: object, arguments: Sequence[str] | None = None) -> bytes:
    """Return the user's function, class or object as bytes for `pickle.loads`, which also extends `sys.path`.

    With `arguments`, those become `sys.argv` there, as in the processes of `multiprocessing`: modules that are imported
    with the value may parse them.

    >>> import pickle
    >>> double = eval(compile("lambda x: 2 * x", "/home/ada/train.py", "eval"))
    >>> again = pickle.loads(pickled(double))
    >>> again(4), again.__code__.co_filename
    (8, '/home/ada/train.py')

    Raise `TypeError` with the name of the variable that cannot be sent to another process.
    """
    file = io.BytesIO()
    try:
        search = _Call(_search, *_own_folders(sys.path))
        first = search if arguments is None else _Call(_second, search, _Call(_take_arguments, [*arguments]))
        _Pickler(file).dump(_Call(_second, first, value))
    except Exception as error:
        name, user = _named_culprit(value, _why_not), getattr(value, "__qualname__", type(value).__qualname__)
        what = f"{user} uses {name}, which" if name else user
        why = f"cannot be sent to another process ({error}): make it in the trial"
        raise TypeError(f"{what} {why}") from error
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
    """Return the folders, not of installed packages, that a program searches before and after the standard library.

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
    others = [entry for entry in sys.path if entry not in before]
    at = others.index(_LIBRARY) if _LIBRARY in others else 0
    sys.path[:] = [*others[:at], *before, *others[at:], *(entry for entry in after if entry not in others)]


def _take_arguments(arguments: Sequence[str]) -> None:
    sys.argv[:] = arguments


_LIBRARY = os.path.dirname(os.__file__)
_reducers: Any = cloudpickle.Pickler.dispatch_table
# Stands in the bytes beside each piece of code, for `other_compiler` to find.
_COMPILER = "compiled by Python {}.{}".format(*sys.version_info)


def _reduced(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    make, arguments = _reducers[CodeType](code)
    return _of_file, (code.co_filename, make, arguments, _COMPILER)


def _of_file(
    name: str, make: Callable[..., CodeType], arguments: tuple[Any, ...], _compiler: str = ""
) -> CodeType:
    return make(*arguments).replace(co_filename=name)


def other_compiler(data: bytes) -> str:
    """Return the version of Python that compiled the code in pickled bytes, if it is not this one; else "".

    Its bytecode would crash this Python. What can be imported is pickled by its name, and has no code in the bytes.

    >>> code = pickled(eval("lambda x: 2 * x"))
    >>> other_compiler(code), other_compiler(code.replace(_COMPILER.encode(), b"compiled by Python 3.10"))
    ('', '3.10')
    """
    versions = {match.decode() for match in re.findall(rb"compiled by Python (\d+\.\d+)", data)}
    return next(iter(versions - {_COMPILER.rpartition(" ")[2]}), "")


class _Pickler(cloudpickle.Pickler):
    """Also takes along the modules that no other process finds, as cloudpickle takes the main one."""

    dispatch_table: ClassVar[Any] = ChainMap({CodeType: _reduced}, _reducers)

    def reducer_override(self, obj: Any) -> Any:
        if issubclass(type(obj), FunctionType | ModuleType | type):
            name = obj.__name__ if isinstance(obj, ModuleType) else obj.__module__
            module = sys.modules.get(str(name))
            if module is not None and module.__name__ == name and not _is_found(name.partition(".")[0]):
                cloudpickle.register_pickle_by_value(module)
        return super().reducer_override(obj)


def _is_found(name: str) -> bool:
    """Return whether another process, which searches the same folders, can import a module.

    It finds neither `__mp_main__`, as the main module is called in a process that multiprocessing has spawned, nor what
    the program has loaded from a file under a name of its own.
    """
    # Finders of an older kind have no `find_spec`.
    searches = [finder.find_spec for finder in sys.meta_path if hasattr(finder, "find_spec")]
    return name == "__main__" or any(find(name, None) for find in searches)


_DEEPEST = 8


def _named_culprit(value: object, why_not: Callable[[object], Exception | None]) -> str:
    """Return the innermost variable of a value for which `why_not` returns an error, and who uses it; "" if none.

    The errors of pickle name only its type.

    >>> def train(parameters):
    ...     return parameters["x"] in settings["names"]
    >>> settings = {"names": (name for name in "ab")}
    >>> _named_culprit(train, lambda part: None if isinstance(part, str) else TypeError())
    "settings['names']"
    """
    path, seen = "", {id(value)}
    for _ in range(_DEEPEST):
        fresh = ((name, part) for name, part in _parts(value) if id(part) not in seen)
        inner = next(((name, part) for name, part in fresh if why_not(part) is not None), None)
        if inner is None:
            break
        path, value = path + inner[0], inner[1]
        seen.add(id(value))
    return path.removeprefix(".")


def _parts(value: Any) -> Iterator[tuple[str, object]]:
    """Yield what is pickled with a value, as one would write it after the value's name."""
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
