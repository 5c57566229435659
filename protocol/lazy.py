"""What is imported on first use, so that a process imports what it needs and nothing else.

A package says once, in its `if TYPE_CHECKING:` block, which names it offers and where they are:

    if TYPE_CHECKING:
        from .charset import Charset, add_charset
    else:
        __getattr__ = lazy_names(__name__, __file__)

A type checker reads the imports, and so does `lazy_names` when the first name is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and every trial script imports this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, whose source is in a file."""
    modules: dict[str, str] = {}

    def find(name: str) -> Any:
        if not modules:
            modules.update(_homes(file))
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(modules[name], package), name)

    return find


def _homes(file: str) -> dict[str, str]:
    """Return name -> module of the imports in the block for type checkers.

    Splitting takes a tenth of the time that parsing and importing `ast` would, and trial scripts wait for it.
    """
    with open(file, encoding="utf-8") as opened:
        _, _, rest = opened.read().partition("\nif TYPE_CHECKING:\n")
    block, _, _ = rest.partition("\nelse:\n")
    homes = {}
    for statement in block.split("    from .")[1:]:
        module, _, names = statement.partition(" import ")
        for name in names.strip().strip("()").split(","):
            homes[name.strip()] = f".{module}"
    return homes
