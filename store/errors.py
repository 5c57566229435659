"""The errors of an experiment's database."""

from __future__ import annotations

import errno
import os
import sqlite3
import struct
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .manager_process import is_lock_held
from .paths import shell_word

# What Python raises for a value that is not as the tables promise: no JSON, another type, an unknown status.
NOT_UNDERSTOOD = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
# What Python raises for what SQLite says; the latter of a message with bytes of a damaged database in it.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
_MOVED = "SQLITE_READONLY_DBMOVED"
_WAL_HEADER = 32
_WAL_MAGIC = 0x377F0683
_FRAME_HEADER = 24
_BLOCK = 1 << 16  # as large as a page can be
_LONGEST = 200
_NOT_READ = {"SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS", "SQLITE_IOERR_DATA"}
_NO_DESCRIPTOR = {code: os.strerror(code) for code in (errno.EMFILE, errno.ENFILE)}


class StoreError(Exception):
    """The database cannot be read or written; the message says which and what to do."""


class NotWritableError(StoreError):
    """Nothing can be written now; `what` says where and why. It may become possible again: `awaited` says with what."""

    def __init__(
        self, what: str, advice: str = "make room and resume the experiment", awaited: str = "room"
    ) -> None:
        super().__init__(f"{what}: {advice}")
        self.what = what
        self.awaited = awaited


class ComputingError(StoreError):
    """The database is whole, and something cannot be computed from it: a fault of Pitchpipe."""


def damaged(path: Path, what: object) -> StoreError:
    """Return the error for a database whose content cannot be understood."""
    return StoreError(f"{path} is damaged ({what}): restore it from a copy")


def empty(path: Path) -> StoreError:
    """Return the error for a database without an experiment."""
    if is_lock_held(path.absolute().parent):
        return StoreError(f"{path} holds no experiment yet: a process is starting it; look again in a moment")
    log = _wal_of(path)
    if _count_commits(log) > 1:  # the first one makes the tables
        return _damaged_wal(path, "none of its commits can be read")
    lost = f", or {log.name} beside it was lost with all that it held (restore both from a copy)"
    is_there = log.exists() and log.stat().st_size  # a reader makes an empty one
    return StoreError(
        f"{path} holds no experiment: it was never started{'' if is_there else lost}; "
        f"delete it (pitchpipe delete {shell_word(path.absolute().parent)}) and start it again"
    )


def is_blank(path: Path, error: Exception) -> bool:
    """Return whether SQLite refuses a database because a power cut came before its first page was written."""
    is_refused = getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB"
    return is_refused and path.stat().st_size <= _BLOCK and not any(path.read_bytes())


def _count_commits(log: Path) -> int:
    """Count the commits that reached a log, whether or not they can be read."""
    try:
        with open(log, "rb") as file:
            header = file.read(_WAL_HEADER)
            if not _is_wal_header(header):
                return 0
            size, salts = int.from_bytes(header[8:12], "big"), header[16:24]
            return sum(frame[8:16] == salts and any(frame[4:8]) for frame in _frames(file, size))
    except OSError:
        return 0


def _frames(file: BinaryIO, page_size: int) -> Iterator[bytes]:
    """Yield the headers of the frames of a log."""
    while len(frame := file.read(_FRAME_HEADER)) == _FRAME_HEADER:
        yield frame
        file.seek(page_size, os.SEEK_CUR)


def check_wal(path: Path) -> None:
    """Raise `StoreError` if the write-ahead log of a database has no valid header; SQLite would ignore its commits."""
    try:
        with open(_wal_of(path), "rb") as file:
            header = file.read(_WAL_HEADER)
            is_blank = not any(header) and not any(map(any, iter(lambda: file.read(_BLOCK), b"")))
    except FileNotFoundError:
        return  # everything is in the database
    except OSError as error:
        raise StoreError(f"{_wal_of(path)} cannot be read: {error.strerror}") from error
    if is_blank:
        return  # a power cut came before anything was written to it
    if len(header) == _WAL_HEADER and not _is_wal_header(header):
        advice = f"; or move it away, to continue with what {path.name} holds"
        raise _damaged_wal(path, "its header is not valid", advice)


def _is_wal_header(header: bytes) -> bool:
    """Check the header's magic number and checksum; the last bit of the number is the order of the checksum's bytes."""
    if len(header) < _WAL_HEADER:
        return False
    magic = int.from_bytes(header[:4], "big")
    words = struct.unpack(f"{'>' if magic & 1 else '<'}6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return magic | 1 == _WAL_MAGIC and struct.unpack(">2I", header[24:]) == (first, second)


def _damaged_wal(path: Path, what: str, advice: str = "") -> StoreError:
    return StoreError(
        f"{_wal_of(path)}, which holds the last commits, is damaged ({what}): "
        f"restore it and {path.name} from a copy{advice}"
    )


def _wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def moved(path: Path) -> StoreError:
    """Return the error for a database that is no longer where it was."""
    return StoreError(
        f"{path} was moved or deleted while it was in use: move it back and resume the experiment, "
        "or restore its folder from a copy"
    )


def explain(path: Path, error: sqlite3.Error | UnicodeDecodeError, *, is_view: bool = False) -> StoreError:
    """Return what an error of SQLite means for the user; a view is never short of space."""
    if isinstance(error, UnicodeDecodeError):
        return damaged(path, bytes(error.object[:_LONGEST]).decode(errors="backslashreplace"))
    text = str(error)
    name = getattr(error, "sqlite_errorname", "")  # errors that Python itself raises have none
    if not path.exists() or name == _MOVED:
        return moved(path)
    if "malformed" in text or "not a database" in text or "decode" in text:
        return damaged(path, text)
    if "locked" in text:
        return StoreError(f"{path} is used by another program ({text}): end that one and try again")
    if "unable to open" in text and (why := _no_descriptor(path)):
        text = why
    if is_view:
        return StoreError(f"{path} cannot be read: {text}")
    return _not_writable(path, text, name) or StoreError(f"{path}: {text}")


def _not_writable(path: Path, text: str, name: str) -> NotWritableError | None:
    """Return the error for what may pass, if it may."""
    if "disk is full" in text:
        return NotWritableError(f"the disk that holds {path} is full")
    if name in _NOT_READ:
        return NotWritableError(f"{path} cannot be read ({text})", "check the disk", "the disk")
    if "disk I/O error" in text:
        return NotWritableError(
            f"{path} cannot be written ({text}; perhaps the disk or its quota is used up)"
        )
    if text in _NO_DESCRIPTOR.values():
        advice = "end programs that hold many files open, or raise their number (ulimit -n), and resume the experiment"
        return NotWritableError(f"{path} cannot be opened ({text})", advice, "a free file descriptor")
    if "readonly" in text or "unable to open" in text:
        advice = "check the disk and the folder's permissions"
        if "unable" in text:
            text = f"{text}; perhaps too many files are open"
        return NotWritableError(f"{path} cannot be written ({text})", advice, "that to change")
    return None


def _no_descriptor(path: Path) -> str:
    """Return why no file can be opened now; empty if one can. SQLite does not say it."""
    # The folder: closing any file of the database would drop the locks that SQLite holds on it in this process.
    try:
        os.close(os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return _NO_DESCRIPTOR.get(error.errno or 0, "")
    return ""


@contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of reading a value that is not as the tables promise into a `StoreError`."""
    try:
        yield
    except NOT_UNDERSTOOD as error:
        said = f"no {error}" if isinstance(error, KeyError) else error
        raise damaged(path, f"{what}: {said}") from error


@contextmanager
def computed(path: Path) -> Iterator[None]:
    """Turn an unforeseen error into a `ComputingError`, so that one experiment does not hide the others."""
    try:
        yield
    except (StoreError, OSError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}, {Path(frame.filename).name}:{frame.lineno}"
        raise ComputingError(
            f"{path} is whole, but not all that it says can be shown ({what}): please report this fault of Pitchpipe"
        ) from error
