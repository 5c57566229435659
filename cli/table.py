"""Tables on stdout: cut to the width of a terminal, whole everywhere else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence

__all__ = ["aligned", "print_table"]


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under a head, in columns."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in aligned([head, *rows], width):
        print(line)


def aligned(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Rows as lines with aligned columns, cut at `width` characters.

    >>> aligned([("#", "status"), ("12", "FAILED")])
    ['#   status', '12  FAILED']
    >>> aligned([("a long line",)], width=7)
    ['a long…']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if width is None:
        return lines
    return [line if len(line) <= width else line[: width - 1] + "…" for line in lines]
