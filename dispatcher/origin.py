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

_PACKAGE = __name__.partition(".")[0]
_PYTHON = "python"
_STANDARD = sys.stdlib_module_names | {"builtins", "__builtin__"}
_CHANGED = "changed while it ran"  # equals no hash


class Origin:
    """The code that this process runs, by module; a file that changes after this was made is not that code.

    >>> origin = Origin()
    >>> sorted(origin.of(["pitchpipe.tuners.random", "numpy.random", "threading"]))
    ['numpy', 'pitchpipe.tuners.random', 'python']
    """

    def __init__(self) -> None:
        self._began = time.time()
        self._known: dict[str, Mapping[str, str]] = {}

    def of(self, modules: Iterable[str]) -> dict[str, str]:
        """Return what identifies the code of modules: by library its version, by other module a hash."""
        found = {_PYTHON: _python()}
        for name in modules:
            if name not in self._known:
                self._known[name] = _identity(name, self._began)
            found |= self._known[name]
        return found


def misfit(needed: Mapping[str, str]) -> str:
    """Return why this process has other code than a checkpoint needs; empty if it has the same.

    >>> misfit({"numpy": "0.9"})
    'was written with numpy 0.9'
    """
    now = time.time()
    for name, identity in needed.items():
        try:
            found = _python() if name == _PYTHON else _identity(name, now).get(name)
        except Exception as error:  # noqa: BLE001 - importing a module may raise anything
            return f"needs {name}, which cannot be imported: {error!r}"
        if found != identity:
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
