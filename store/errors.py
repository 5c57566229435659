"""The errors of an experiment's database."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "NOT_UNDERSTOOD",
    "NoRoomError",
    "StoreError",
    "check_wal",
    "damaged",
    "empty",
    "explain",
    "moved",
    "understood",
]

# What Python raises for a value that is not as the tables promise: no JSON, another type, an unknown status.
NOT_UNDERSTOOD = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_MOVED = "SQLITE_READONLY_DBMOVED"
_WAL_HEADER = 32
_WAL_MAGIC = 0x377F0683


class StoreError(Exception):
    """The database cannot be read or written; the message says which and what to do."""


class NoRoomError(StoreError):
    """Nothing can be written now; `what` says where and why. It may become possible again."""

    def __init__(self, what: str, advice: str = "make room and resume the experiment") -> None:
        super().__init__(f"{what}: {advice}")
        self.what = what


def damaged(path: Path, what: object) -> StoreError:
    """Return the error for a database whose content cannot be understood."""
    return StoreError(f"{path} is damaged ({what}): restore it from a copy")


def empty(path: Path) -> StoreError:
    """Return the error for a database without an experiment."""
    wal = _wal_of(path)
    if wal.exists() and wal.stat().st_size > _WAL_HEADER:
        return _damaged_wal(path, "none of its commits can be read")
    lost = f"or {wal.name} beside it was lost with all that it held (restore both from a copy)"
    return StoreError(f"{path} holds no experiment: it was never started, {lost}")


def check_wal(path: Path) -> None:
    """Raise `StoreError` if the write-ahead log of a database has no valid header; SQLite would ignore its commits."""
    try:
        with open(_wal_of(path), "rb") as file:
            header = file.read(_WAL_HEADER)
    except FileNotFoundError:
        return  # everything is in the database
    except OSError as error:
        raise StoreError(f"{_wal_of(path)} cannot be read: {error.strerror}") from error
    if len(header) == _WAL_HEADER and not _is_wal_header(header):
        advice = f"; or move it away, to continue with what {path.name} holds"
        raise _damaged_wal(path, "its header is not valid", advice)


def _is_wal_header(header: bytes) -> bool:
    """Check the header's magic number and checksum; the last bit of the number is the order of the checksum's bytes."""
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


def explain(path: Path, error: sqlite3.Error, *, is_view: bool = False) -> StoreError:
    """Return what an error of SQLite means for the user; a view is never short of space."""
    text = str(error)
    name = getattr(error, "sqlite_errorname", "")  # errors that Python itself raises have none
    if not path.exists() or name == _MOVED:
        return moved(path)
    if "malformed" in text or "not a database" in text or "decode" in text:
        return damaged(path, text)
    if is_view:
        return StoreError(f"{path} cannot be read: {text}")
    if "disk is full" in text:
        return NoRoomError(f"the disk that holds {path} is full")
    if "disk I/O error" in text:
        return NoRoomError(f"{path} cannot be written ({text}; perhaps the disk or its quota is used up)")
    if "readonly" in text or "unable to open" in text:
        return NoRoomError(
            f"{path} cannot be written ({text})", "check the disk and the folder's permissions"
        )
    return StoreError(f"{path}: {text}")


@contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of reading a value that is not as the tables promise into a `StoreError`."""
    try:
        yield
    except NOT_UNDERSTOOD as error:
        said = f"no {error}" if isinstance(error, KeyError) else error
        raise damaged(path, f"{what}: {said}") from error
