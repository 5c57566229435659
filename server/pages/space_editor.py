"""The search space as editable text, with its problems below."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nicegui import html, ui

from ...search_space import check

__all__ = ["SpaceEditor"]


class SpaceEditor:
    """A text field with the search space as JSON, one parameter per line."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        html.p("Applies to new trials only.").classes("pp-dim")
        self._text = ui.textarea("Search space (JSON)", value=_written(space)).classes("pp-mono")
        self._text.props("outlined autogrow spellcheck=false").style("width: 100%; margin: .5rem 0")
        self._problems = html.div().classes("pp-bad").props("role=alert")

    def read(self) -> dict[str, Any] | None:
        """Return the search space that was typed; None if it is invalid, which is shown."""
        space, problems = _examined(self._text.value or "")
        self._problems.clear()
        with self._problems:
            for problem in problems:
                html.p(problem)
        return None if problems else space


def _written(space: Mapping[str, Any]) -> str:
    """Write the search space as JSON, one parameter per line.

    >>> print(_written({"x": {"_type": "uniform", "_value": [0, 1]}}))
    {
      "x": {"_type": "uniform", "_value": [0, 1]}
    }
    """
    lines = [f"  {json.dumps(name)}: {json.dumps(inner)}" for name, inner in space.items()]
    return "{\n" + ",\n".join(lines) + "\n}"


def _examined(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the search space in a text, and its problems.

    >>> _examined('{"x": {"_type": "uniform"')[1]
    ["invalid JSON: Expecting ',' delimiter in line 1, column 26"]
    """
    try:
        space = json.loads(text)
    except json.JSONDecodeError as error:
        return {}, [f"invalid JSON: {error.msg} in line {error.lineno}, column {error.colno}"]
    return space, [str(problem) for problem in check(space)]
