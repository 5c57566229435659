"""Tables on stdout: cut to the width of a terminal, whole everywhere else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

__all__ = ["aligned", "print_table"]


_GAP = "  "
# A column that gives way is shown with at least so many characters, or not at all.
_NARROWEST = 12
# The last column gets so much, if it needs it, before the one that gives way gets anything.
_LAST = 50


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], giving_way: int | None = None) -> None:
    """Print rows under a head, in columns; where they do not fit, the column `giving_way` is cut or left out."""
    table = [head, *rows]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if width is not None and giving_way is not None:
        table = narrowed(table, width, giving_way)
    for line in aligned(table, width):
        print(line)


def narrowed(rows: Sequence[Sequence[str]], width: int, column: int) -> list[Sequence[str]]:
    """Rows in which one column is cut, or left out, so that the others can be read.

    >>> narrowed([("#", "parameters", "reason"), ("1", "lr=0.1 momentum=0.9", "too big")], 27, 1)
    [['#', 'parameters', 'reason'], ['1', 'lr=0.1 momentu…', 'too big']]
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    others = sum(widths[:column]) + sum(min(size, _LAST) for size in widths[column + 1 :])
    left = width - others - len(_GAP) * (len(widths) - 1)
    if left >= widths[column]:
        return list(rows)
    if left < _NARROWEST:
        return [[*row[:column], *row[column + 1 :]] for row in rows]
    return [[*row[:column], _cut(row[column], left), *row[column + 1 :]] for row in rows]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows as lines with aligned columns, cut at `width` characters.

    >>> aligned([("#", "status"), ("12", "FAILED")])
    ['#   status', '12  FAILED']
    >>> aligned([("a long line",)], width=7)
    ['a long…']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        _GAP.join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if width is None:
        return lines
    return [_cut(line, width) for line in lines]
