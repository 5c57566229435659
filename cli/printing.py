"""Output: lines and tables without control characters, on streams that may be closed, full or without a reader.

`escape_output` puts an escaping stream around stdout and stderr, so that no verb can forget it, and no text of a user
moves the cursor or hides other texts: control and invisible characters are written as JSON escapes them, which changes
no value in JSON. Lines and tabs stay; where a text has to be on one line, `print_line` escapes those, too. What draws
on the terminal itself uses `drawing_stream`.

`open_streams` and `finish_output` see to it that an experiment does not lose its result to an output that cannot be
written: that is dropped, and said at the end. Only when the reader of a pipe leaves, a verb that prints ends; from
`let_output_fail` on, when an experiment depends on the process, not even then.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, Any

import click

from ..telling import escaped
from .failures import FAILED

_NAMES = ("stdin", "stdout", "stderr")
_KEPT = "\n\t"
_LONGEST = 4_000
# In the output of a trial: colours, and what a progress bar needs to write over its own line.
_HARMLESS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[K|[\r\b]")
# The beginning of what may be one of these, at the end of a portion.
_BEGUN = re.compile(r"\x1b(\[[0-9;]{0,40})?\Z")
_GAP = "  "  # between the columns of a table
# The shrinking column has at least this width, or is left out.
_NARROWEST = 12
# The last column gets up to this width before the shrinking one gets any.
_LAST = 50
_WIDEST = 1_000


def print_line(text: str, **style: Any) -> None:
    """Print one line on stdout, with colours on a terminal; a line break in the text is escaped, a long one is cut."""
    shown = escaped(text)
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}… ({len(shown)} characters; --json prints all)"
    click.secho(shown, file=drawing_stream(sys.stdout), **style)


def print_warning(path: object, warning: str) -> None:
    """Print a warning about the config at `path` on stderr, on one line."""
    click.echo(escaped(f"{path}: warning: {warning}"), err=True)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]], giving_way: int | None = None) -> None:
    """Print rows below a head, in columns; on a terminal, cut or leave out the column `giving_way` if need be.

    Elsewhere only cells of more than 1,000 characters are cut.
    """
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


class _EscapingStream(io.TextIOWrapper):
    """A text stream that escapes control characters; `original` is the stream that does not."""

    def __init__(self, original: io.TextIOWrapper) -> None:
        # Trials may report lone surrogates, which no encoding can represent; JSON reads their escapes back.
        super().__init__(
            original.buffer,
            encoding=original.encoding,
            errors="backslashreplace",
            line_buffering=original.line_buffering,
            write_through=original.write_through,
        )
        self.original = original

    def write(self, text: str, /) -> int:
        super().write(escaped(text, keep=_KEPT))
        return len(text)


def escape_output() -> None:
    """Make stdout and stderr of this process escape control characters, until it ends."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, _EscapingStream):
            stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, _EscapingStream(stream))


def drawing_stream(stream: IO[str]) -> IO[str]:
    """Return the stream for a caller that writes control characters, and itself escapes the texts of users."""
    return stream.original if isinstance(stream, _EscapingStream) else stream


class TerminalBytes:
    """A stream of bytes for a trial's output on a terminal: colours stay, and other control characters are escaped."""

    def __init__(self, output: IO[str]) -> None:
        self._output = drawing_stream(output)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._begun = ""

    def write(self, data: bytes) -> int:
        """Write a portion; what may be half of a colour is kept until the next one."""
        text = self._begun + self._decoder.decode(data)
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        self._show(text.removesuffix(self._begun))
        return len(data)

    def writelines(self, lines: Iterable[bytes]) -> None:
        """Write many portions."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the terminal."""
        self._output.flush()

    def _show(self, text: str) -> None:
        shown, end = "", 0
        for harmless in _HARMLESS.finditer(text):
            shown += escaped(text[end : harmless.start()], keep=_KEPT) + harmless[0]
            end = harmless.end()
        self._output.write(shown + escaped(text[end:], keep=_KEPT))


class _Output(io.FileIO):
    """A stream of this process; `failure` is the last error of writing to it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None
        self.is_missing = False  # whether it was closed when the process began
        self.may_fail = _NAMES[descriptor] == "stderr"

    def write(self, data: Any, /) -> int:
        try:
            if self.is_missing:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return super().write(data) or 0
        except OSError as error:
            is_first, self.failure = self.failure is None, error
            if is_first and not self.may_fail and isinstance(error, BrokenPipeError):
                raise
            return len(data)  # otherwise it would be tried again, at the latest when Python ends


def open_streams() -> None:
    """Open the streams that are closed, so that no other file takes their numbers, and watch stdout and stderr."""
    for descriptor, name in enumerate(_NAMES):
        is_missing = False
        try:
            os.fstat(descriptor)
        except OSError:
            is_missing = True
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            os.set_inheritable(descriptor, True)
        before = getattr(sys, name)
        if descriptor > 0 and _is_on(descriptor, before):
            setattr(sys, name, _watched(descriptor, before, is_missing))
        if sys.stdin is None:
            sys.stdin = open(descriptor, closefd=False)  # noqa: SIM115  (until the process ends)


def _is_on(descriptor: int, stream: Any) -> bool:
    """Return whether a stream still leads to a descriptor, and has not been replaced."""
    try:
        return stream is None or stream.fileno() == descriptor
    except (AttributeError, OSError):
        return False


def _watched(descriptor: int, before: Any, is_missing: bool) -> io.TextIOWrapper:
    is_terminal, output = os.isatty(descriptor), _Output(descriptor)
    output.is_missing = is_missing
    return io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding=_encoding(before),
        errors="backslashreplace",
        line_buffering=is_terminal or descriptor == 2,
    )


def _encoding(before: Any) -> str:
    """Return the encoding of a stream, but UTF-8 in place of ASCII: no user has chosen a locale with that."""
    if before is None or codecs.lookup(before.encoding).name == "ascii":
        return "utf-8"
    return before.encoding


def let_output_fail() -> None:
    """From now on, let nothing end because stdout cannot be written."""
    if (output := _output()) is not None:
        output.may_fail = True


def finish_output(code: int) -> int:
    """Flush stdout, say on stderr if something was lost, and return the exit code; `code` is that of the verb."""
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    output = _output()
    if output is None or output.failure is None:
        return code
    if not isinstance(output.failure, BrokenPipeError):  # otherwise the reader (head, less) has just left
        click.echo(f"error: stdout cannot be written: {output.failure.strerror}", err=True)
    return code if output.may_fail else code or FAILED


def _output() -> _Output | None:
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Output) else None
