"""The code that a checkpoint fits, noted when it is written, so that a later process can compare before it loads it.

A pickle holds the attributes that objects had, and only the names of their classes. Code that has changed since may
refuse it, or take it and fail later. So a checkpoint names each module whose classes it needs, with a hash of its
source, and each library, with its version.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterable, Mapping
from importlib import import_module
from io import BytesIO
from types import FunctionType
from typing import Any

import cloudpickle

_PACKAGE = __name__.partition(".")[0]
_PYTHON = "python"
_STANDARD = sys.stdlib_module_names | {"builtins", "__builtin__"}
_CHANGED = "changed while it ran"  # equals no hash


class Origin:
    """The code that a process runs, by module; a file that has changed since the process `began` is not that code.

    >>> origin = Origin(began=time.time())
    >>> sorted(origin.of(["pitchpipe.tuners.random", "numpy.random", "threading"]))
    ['numpy', 'pitchpipe.tuners.random', 'python']
    """

    def __init__(self, began: float) -> None:
        self._began = began
        self._known: dict[str, Mapping[str, str]] = {}

    def of(self, modules: Iterable[str]) -> dict[str, str]:
        """Return what identifies the code of modules: by library its version, by other module a hash."""
        identities = {_PYTHON: _python()}
        for name in modules:
            if name not in self._known:
                self._known[name] = _identity(name, self._began)
            identities |= self._known[name]
        return identities


def misfit(needed: Mapping[str, str]) -> str:
    """Return why this process has other code than a checkpoint needs; empty if it has the same.

    >>> misfit({"numpy": "0.9"})
    'was written with numpy 0.9'
    """
    now = time.time()
    for name, identity in needed.items():
        try:
            present = _python() if name == _PYTHON else _identity(name, now).get(name)
        except Exception as error:  # noqa: BLE001 - importing a module may raise anything
            return f"needs {name}, which cannot be imported: {error!r}"
        if present != identity:
            is_hash = len(identity) == _HASH_LENGTH or identity == _CHANGED
            return (
                f"was written by other code of {name}" if is_hash else f"was written with {name} {identity}"
            )
    return ""


def _identity(name: str, began: float) -> Mapping[str, str]:
    """Return the name of a library with its version, or that of a module with the hash of its file."""
    top = name.partition(".")[0]
    if top in _STANDARD:
        return {}
    file = getattr(import_module(name), "__file__", None)
    if file is None:
        return {}  # made in memory, like the one that Cython's functions have in common
    version = getattr(sys.modules[top], "__version__", None)
    if top != _PACKAGE and isinstance(version, str) and _is_installed(file):
        return {top: version}
    with open(file, "rb") as opened:
        changed = os.fstat(opened.fileno()).st_ctime
        return {name: _CHANGED if changed > began else _hash(opened.read())}


def _is_installed(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


def _python() -> str:
    return sys.implementation.cache_tag or sys.version


def _hash(source: bytes) -> str:
    return hashlib.sha1(source, usedforsecurity=False).hexdigest()


_HASH_LENGTH = len(_hash(b""))


def pickle_of(value: object) -> tuple[bytes, set[str]]:
    """Return an object as a pickle, and the modules of the classes, their bases and the functions that it needs.

    >>> from pitchpipe.tuners import RandomTuner
    >>> needed = pickle_of(RandomTuner(seed=1))[1]
    >>> sorted({"pitchpipe.tuners.random", "pitchpipe.tuners.tuner", "pitchpipe.tuners.tpe"} & needed)
    ['pitchpipe.tuners.random', 'pitchpipe.tuners.tuner']
    """
    file = BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    bases = {base for cls in pickler.classes for base in cls.__mro__}
    return file.getvalue(), pickler.modules | {base.__module__ for base in bases}


class _Pickler(cloudpickle.Pickler):
    """Notes the classes and functions that it names."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file)
        self.classes: set[type] = set()
        self.modules: set[str] = set()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType):
            self.modules.add(obj.__module__)
        else:
            self.classes.add(obj if isinstance(obj, type) else type(obj))
        return super().reducer_override(obj)
