"""Opening and closing the database, in steps after each of which it can be read although the process is killed.

A database that is closed is one file without a log, which any reader can open, also where nothing can be written. While
it is open to write it has a write-ahead log. Its header says which of the two holds, and SQLite changes a page through
a rollback journal: a process that is killed then leaves a journal that only a writer can undo. So the journal of this
one change is in memory: the header lies in the first sector of the file, and one write replaces it
(docs/decisions/0019).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from .errors import SQLITE_ERRORS, StoreError, check_wal, empty, explain, is_blank
from .schema import SCHEMA_VERSION

# A tick touches a few rows at the end of each table: half the usual page is half of what it has to write.
_PAGE = 2048
# Two syncs each time that the log (16 MB) is folded into the database, while the experiment waits.
_MOST_PAGES = 8000
_FEWEST_PAGES = 64
# Folding the log takes as much room again, at most: of what is free it may use this part.
_PART = 8
_NEEDS_WRITER = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


# ---------------------------------------------------------------------- to write


def open_to_write(path: Path) -> sqlite3.Connection:
    """Return a connection that writes and syncs every commit; raise `sqlite3.Error`."""
    # It may be made in one thread and used in another (a notebook's loop keeps its own), never by two at once.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        db.execute(f"PRAGMA page_size = {_PAGE}")
        db.execute("PRAGMA synchronous = FULL")  # first: the header is synced, too
        begin_log(db)
        fit_log(db, path)
    except BaseException:
        db.close()
        raise
    return db


def begin_log(db: sqlite3.Connection) -> None:
    """Give a database its write-ahead log, unless it has one."""
    if _mode(db) == "wal":
        return
    _set_mode(db, "MEMORY")
    if _set_mode(db, "WAL") != "wal":
        raise sqlite3.OperationalError("unable to open a write-ahead log")


def end_log(db: sqlite3.Connection) -> None:
    """Fold the log into the database and leave one file, unless another process uses it now."""
    db.execute("PRAGMA busy_timeout = 0")
    _set_mode(db, "MEMORY")


def fit_log(db: sqlite3.Connection, path: Path) -> None:
    """Have the log folded before it takes much of the room that is left on the disk."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return
    pages = disk.f_bavail * disk.f_frsize // _PART // _PAGE
    pages = max(_FEWEST_PAGES, min(_MOST_PAGES, pages))
    db.execute(f"PRAGMA wal_autocheckpoint = {pages}")
    db.execute(f"PRAGMA journal_size_limit = {pages * _PAGE}")


def fold_log(db: sqlite3.Connection) -> None:
    """Fold the log into the database and give its room back, as far as no reader needs it."""
    (patience,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute("PRAGMA busy_timeout = 0")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")


def _mode(db: sqlite3.Connection) -> str:
    return db.execute("PRAGMA journal_mode").fetchone()[0]


def _set_mode(db: sqlite3.Connection, mode: str) -> str:
    return db.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0]


# ---------------------------------------------------------------------- to read


def open_to_read(path: Path, *, timeout: float = 5.0, check_same_thread: bool = True) -> sqlite3.Connection:
    """Return a connection that reads an experiment; raise `StoreError` if there is none or it cannot be read.

    What an earlier version left half-written is rolled back first. Where SQLite cannot read a database without writing
    beside it, and may not, a copy in a temporary folder is read.
    """
    if not path.is_file():
        raise StoreError(f"{path} does not exist: this is not the folder of an experiment")
    check_wal(path)
    if not path.stat().st_size:
        raise empty(path)  # SQLite would delete the log beside it
    db: sqlite3.Connection | None = None
    try:
        db = _reader(path, timeout, check_same_thread)
        if check_version(path, db) == 0:
            raise empty(path)
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, SQLITE_ERRORS):
            if is_blank(path, error):
                raise empty(path) from error
            raise explain(path, error, is_view=True) from error
        raise
    return db


def check_version(path: Path, db: sqlite3.Connection) -> int:
    """Return the version of the tables, 0 before there are any; raise `StoreError` for one of a newer Pitchpipe."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} was written by a newer Pitchpipe (database version {version}, "
            f"this one knows {SCHEMA_VERSION}): upgrade Pitchpipe here (docs/use/install.md)"
        )
    return version


def _reader(path: Path, timeout: float, check_same_thread: bool) -> sqlite3.Connection:
    """Return a connection that has read something: where it is, or else from a copy."""
    try:
        return _connected(path, "ro", timeout, check_same_thread)
    except sqlite3.OperationalError as error:
        if not _needs_writer(error):
            raise
    with suppress(sqlite3.OperationalError):  # it cannot be written
        _roll_back(path)
        return _connected(path, "ro", timeout, check_same_thread)
    return _read_copy(path, check_same_thread)


def _needs_writer(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NEEDS_WRITER


def _roll_back(path: Path) -> None:
    """Undo what a process began to write through a journal when it was killed, as earlier versions did."""
    if path.with_name(f"{path.name}-journal").exists():
        _connected(path, "rw", 5.0, True).close()


def _read_copy(path: Path, check_same_thread: bool) -> sqlite3.Connection:
    """Return a connection to a copy that is complete in itself; its file is gone when the connection is closed."""
    try:
        with TemporaryDirectory(prefix="pitchpipe-") as folder:
            copy = Path(folder, path.name)
            for end in ("", "-journal", "-wal"):
                with suppress(FileNotFoundError):
                    shutil.copyfile(f"{path}{end}", f"{copy}{end}")
            db = _connected(copy, "rw", 5.0, check_same_thread)
            _set_mode(db, "MEMORY")
            db.execute("PRAGMA query_only = ON")
            return db
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise StoreError(f"{path} cannot be read: {error.strerror or error}{where}") from error


def _connected(path: Path, mode: str, timeout: float, check_same_thread: bool) -> sqlite3.Connection:
    """Return a connection that has read the header, so that a failure shows."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=timeout,
        check_same_thread=check_same_thread,
    )
    try:
        db.execute("PRAGMA user_version").fetchone()
    except BaseException:
        db.close()
        raise
    return db
