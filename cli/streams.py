"""Stdout and stderr of this process: closed, on a full disk or without a reader, they cost no experiment its result.

What cannot be written is dropped, and `finish_output` says so at the end. Only the reader of a pipe who leaves ends a
verb that prints, and from `let_output_fail` on, when an experiment depends on the process, not even that.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any

import click

from .failures import FAILED

__all__ = ["finish_output", "let_output_fail", "open_streams"]

_NAMES = ("stdin", "stdout", "stderr")


class _Output(io.FileIO):
    """A stream of this process; `failure` is the last error of writing to it."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self.failure: OSError | None = None
        self.is_missing = False  # it was closed when the process began
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
    """Return whether a stream leads to a descriptor, not to what somebody has put in its place."""
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
    """Return the encoding of a stream; in place of ASCII, which is that of no locale that somebody chose, UTF-8."""
    if before is None or codecs.lookup(before.encoding).name == "ascii":
        return "utf-8"
    return before.encoding


def let_output_fail() -> None:
    """From now on, let nothing end because stdout cannot be written."""
    if (output := _output()) is not None:
        output.may_fail = True


def finish_output(code: int) -> int:
    """Write what is left for stdout; say on stderr if something was lost; return the exit code, given the verb's."""
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
