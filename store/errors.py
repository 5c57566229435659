"""The errors of an experiment's database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["NOT_UNDERSTOOD", "NoRoomError", "StoreError", "damaged", "empty", "explain", "understood"]

# What Python raises for a value that is not as the tables promise: no JSON, another type, an unknown status.
NOT_UNDERSTOOD = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
_MOVED = "SQLITE_READONLY_DBMOVED"


class StoreError(Exception):
    """The database cannot be read or written; the message says which and what to do."""


class NoRoomError(StoreError):
    """Nothing can be written at present; `what` says where and why. It may become possible again."""

    def __init__(self, what: str, advice: str = "make room and resume the experiment") -> None:
        super().__init__(f"{what}: {advice}")
        self.what = what


def damaged(path: Path, what: object) -> StoreError:
    """Return the error for a database whose content cannot be understood."""
    return StoreError(f"{path} is damaged ({what}): restore it from a copy")


def empty(path: Path) -> StoreError:
    """Return the error for a database without an experiment."""
    lost = f"or {path.name}-wal beside it was lost with all that it held (restore both from a copy)"
    return StoreError(f"{path} holds no experiment: it was never started, {lost}")


def explain(path: Path, error: sqlite3.Error, *, is_view: bool = False) -> StoreError:
    """Return what an error of SQLite means for the user; a view is never short of space."""
    text = str(error)
    name = getattr(error, "sqlite_errorname", "")  # errors that Python itself raises have none
    if not path.exists() or name == _MOVED:
        return StoreError(f"{path} was moved or deleted ({text})")
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
