"""Pickled functions whose tracebacks name the user's files: cloudpickle itself leaves out the names."""

from __future__ import annotations

import io
from collections import ChainMap
from collections.abc import Callable
from types import CodeType
from typing import Any, ClassVar

import cloudpickle

__all__ = ["pickled"]


def pickled(value: object) -> bytes:
    """Return the user's function, class or object as bytes for `pickle.loads`.

    >>> import pickle
    >>> double = eval(compile("lambda x: 2 * x", "/home/ada/train.py", "eval"))
    >>> again = pickle.loads(pickled(double))
    >>> again(4), again.__code__.co_filename
    (8, '/home/ada/train.py')
    """
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


_reducers: Any = cloudpickle.Pickler.dispatch_table


def _reduced(code: CodeType) -> tuple[Callable[..., CodeType], tuple[Any, ...]]:
    make, arguments = _reducers[CodeType](code)
    return _of_file, (code.co_filename, make, arguments)


def _of_file(name: str, make: Callable[..., CodeType], arguments: tuple[Any, ...]) -> CodeType:
    return make(*arguments).replace(co_filename=name)


class _Pickler(cloudpickle.Pickler):
    dispatch_table: ClassVar[Any] = ChainMap({CodeType: _reduced}, _reducers)
