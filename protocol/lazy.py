"""Packages whose names are loaded on first use, so that a process imports what it needs and nothing else."""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every trial script imports this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package; `homes` maps its modules to their names, separated by spaces.

    >>> find = lazy_names("email", {".charset": "Charset add_charset"})
    >>> find("Charset").__module__
    'email.charset'
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(modules[name], package), name)

    return find
