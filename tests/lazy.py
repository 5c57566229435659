"""Large libraries that one file of tests uses: each worker imports all files, and runs the tests of some."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Lazy"]


class Lazy:
    """A module that is imported when a test uses it: `stats = Lazy("scipy.stats")`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for marks of its own in everything
            raise AttributeError(name)
        return getattr(import_module(self._module), name)
