"""An extension of griffe: shows the doctests of docstrings as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["Doctests", "fenced"]

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts fences round the doctests of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was loaded."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its doctests as blocks of code."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
