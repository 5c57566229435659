"""Tables on stdout: cut to the width of a terminal; elsewhere only cells of more than 1,000 characters are cut."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

from ..store.reading import escaped

__all__ = ["aligned", "print_table"]


_GAP = "  "
# The shrinking column has at least this width, or is left out.
_NARROWEST = 12
# The last column gets up to this width before the shrinking one gets any.
_LAST = 50
_WIDEST = 1_000


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], giving_way: int | None = None) -> None:
    """Print rows below a head, in columns; where they do not fit, cut or leave out the column `giving_way`."""
    table = [[escaped(cell) for cell in row] for row in (head, *rows)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if width is not None and giving_way is not None:
        table = narrowed(table, width, giving_way)
    for line in aligned(table, width):
        print(line)


def narrowed(rows: Sequence[Sequence[str]], width: int, column: int) -> list[Sequence[str]]:
    """Return rows with one column cut or left out, so that the others can be read.

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
    """Return rows as lines with aligned columns, cut at `width` characters.

    >>> aligned([("#", "status"), ("12", "FAILED")])
    ['#   status', '12  FAILED']
    >>> aligned([("a long line",)], width=7)
    ['a long…']
    """
    rows = [[_cut(cell, _WIDEST) for cell in row] for row in rows]  # a long one would widen all others
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        _GAP.join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if width is None:
        return lines
    return [_cut(line, width) for line in lines]
