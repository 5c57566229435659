"""What leaves for a terminal: texts of users without control characters, so that none moves the cursor or hides others.

`escape_output` puts it around stdout and stderr of a process, so that no verb can forget it: control and invisible
characters are written as JSON escapes them, which changes no value in JSON. Lines and tabs stay; where a text has to be
on one line, `print_line` escapes those, too. What draws on the terminal itself takes `drawing_stream`.
"""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections.abc import Iterable
from typing import IO, Any

import click

from ..store.reading import escaped

__all__ = ["TerminalBytes", "drawing_stream", "escape_output", "print_line", "print_warning"]

_KEPT = "\n\t"
_LONGEST = 4_000
# Of the output of a trial: colours, and what a progress bar needs to write over its own line.
_HARMLESS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[K|[\r\b]")
# The beginning of what may be one of these, at the end of a portion.
_BEGUN = re.compile(r"\x1b(\[[0-9;]{0,40})?\Z")


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
    """Return the stream for what consists of control characters itself; it escapes the texts of users."""
    return stream.original if isinstance(stream, _EscapingStream) else stream


def print_line(text: str, **style: Any) -> None:
    """Print one line on stdout, with colours on a terminal; a line break in the text is escaped, a long one is cut."""
    shown = escaped(text)
    if len(shown) > _LONGEST:
        shown = f"{shown[:_LONGEST]}… ({len(shown)} characters; --json prints all)"
    click.secho(shown, file=drawing_stream(sys.stdout), **style)


def print_warning(path: object, warning: str) -> None:
    """Print what is doubtful about the config at a path on stderr, on one line."""
    click.echo(escaped(f"{path}: warning: {warning}"), err=True)


class TerminalBytes:
    """A stream of bytes that shows the output of a trial on a terminal: colours stay, and all else is escaped."""

    def __init__(self, output: IO[str]) -> None:
        self._output = drawing_stream(output)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="backslashreplace")
        self._begun = ""

    def write(self, data: bytes) -> int:
        """Write a portion; what may be half of a colour waits for the next."""
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
        """Show all that has been written."""
        self._output.flush()

    def _show(self, text: str) -> None:
        shown, end = "", 0
        for found in _HARMLESS.finditer(text):
            shown += escaped(text[end : found.start()], keep=_KEPT) + found[0]
            end = found.end()
        self._output.write(shown + escaped(text[end:], keep=_KEPT))
