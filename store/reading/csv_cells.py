"""Cells of CSV files, so that a spreadsheet calculates nothing and each value is read back as it was.

A text gets an apostrophe before it, as one writes a text in a spreadsheet, if it begins with what begins a formula (or
with an apostrophe), or would be read as something else: `0.1`, `true`, nothing.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "＝", "＋", "－", "＠")
# What JSON does not read: words of Python and of spreadsheets, and numbers as people write them.
_WORDS = {"True": True, "False": False, "TRUE": True, "FALSE": False, "None": None}
_WORDS |= {"inf": math.inf, "-inf": -math.inf}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MARK = "'"
NULL = object()
"""A value that is null; a cell without a value is None."""


class _Lines(list[str]):
    """The lines that a writer of CSV makes."""

    def write(self, line: str) -> None:
        """Take a line."""
        self.append(line)


def csv_text(rows: Iterable[Sequence[Any]]) -> bytes:
    """Return rows as lines; None and NaN are empty cells, lists are JSON.

    >>> csv_text([["n", "text"], [-1.5, "-1.5"], [None, "=A1"]])
    b"n,text\\n-1.5,'-1.5\\n,'=A1\\n"
    """
    lines = _Lines()
    # A line break within a cell is quoted if it is one of those between lines.
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerows(map(_cell, row) for row in rows)
    return "".join(f"{line[:-2]}\n" for line in lines).encode("utf-8", "backslashreplace")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return _marked(value)
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if value is NULL:
        return "null"
    return None if value != value else value


def _marked(text: str) -> str:
    return _MARK + text if _needs_mark(text) else text


def _needs_mark(text: str) -> bool:
    return text.startswith(_FORMULA) or _read(text) != text


def cell_value(text: str) -> Any:
    """Return the value of a cell: a number, a truth value, a list, a text, or None for an empty cell.

    >>> [cell_value(text) for text in ("-1.5", "'-1.5", "+.5", "relu", "True", "[1, 2]", "")]
    [-1.5, '-1.5', 0.5, 'relu', True, [1, 2], None]
    """
    return cell_text(text) if _is_marked(text) else _read(text)


def cell_text(text: str) -> str:
    """Return the text of a cell that has one, such as the name of a column.

    >>> cell_text("'0.1"), cell_text("0.1"), cell_text("'tis")
    ('0.1', '0.1', "'tis")
    """
    return text[1:] if _is_marked(text) else text


def _is_marked(text: str) -> bool:
    return text.startswith(_MARK) and _needs_mark(text[1:])


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return float(text) if _NUMBER.fullmatch(text) else _WORDS.get(text, text or None)
