"""Read-only connections to an experiment's database, shared by the threads of a server.

While a connection reads, the manager's write-ahead log cannot be folded back into the database. So reads are short,
connections are few, and none reads while a slow client is written to.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...protocol import Objective
from ..errors import SQLITE_ERRORS, StoreError, explain
from ..folder import ExperimentFolder
from ..opening import open_to_read
from ..paths import FolderError
from ..store import Store
from . import family_functions, json_values

__all__ = ["Database"]

Row = tuple[Any, ...]
_CONNECTIONS = 4
# The tables have had everything that is read here since this version.
_OLDEST = 2
# How long a reader waits for a connection, or for the writer while it changes the journal: seconds.
_PATIENCE = 10.0
_PORTION = 500


class Database:
    """Runs queries over one experiment's database, from any thread; raises `StoreError` if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.objectives: tuple[Objective, ...] | None = None  # read once: they never change
        self.repeats: int | None = None  # the same
        self._free: queue.LifoQueue[sqlite3.Connection | None] = queue.LifoQueue()
        for _ in range(_CONNECTIONS):
            self._free.put(None)  # made when it is needed
        self._is_closed = False
        self._watching = threading.Lock()
        self._watcher: sqlite3.Connection | None = None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self.connection() as db:
            return db.execute(statement, values).fetchall()

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query."""
        with self.connection() as db:
            return db.execute(statement, values).fetchone()

    def portions(self, statement: str, values: Sequence[Any] = ()) -> Iterator[list[Row]]:
        """Yield the rows of a table of trials in order, some hundred at a time: each portion is a read of its own.

        The first column of `statement`, which has no condition, is `sequence_id`.
        """
        after = -1
        page = "WHERE sequence_id > ? ORDER BY sequence_id LIMIT ?"
        while found := self.rows(f"{statement} {page}", (*values, after, _PORTION)):
            yield found
            after = found[-1][0]

    def version(self) -> int:
        """Return a number that changes with the database; this takes a few microseconds."""
        with self._watching:  # the number is one connection's own: always ask the same one
            try:
                self._watcher = self._watcher or self._connect()
                return self._watcher.execute("PRAGMA data_version").fetchone()[0]
            except SQLITE_ERRORS as error:
                raise explain(self.path, error, is_view=True) from error

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to one thread: all its statements see the same state of the experiment."""
        if self._is_closed:
            raise StoreError(f"{self.path} is closed")
        try:
            db = self._free.get(timeout=_PATIENCE)
        except queue.Empty:
            raise StoreError(f"{self.path} has too many readers at once: try again") from None
        try:
            db = db or self._connect()
            db.execute("BEGIN")
            try:
                yield db
            finally:
                db.execute("ROLLBACK")
        except SQLITE_ERRORS as error:
            raise explain(self.path, error, is_view=True) from error
        finally:
            self._free.put(db)

    def schema_version(self) -> int:
        """Return the version of the tables."""
        row = self.row("PRAGMA user_version")
        return row[0] if row else 0

    def close(self) -> None:
        """Close all connections that are not in use."""
        self._is_closed = True
        while not self._free.empty():
            if (db := self._free.get_nowait()) is not None:
                db.close()
        with self._watching:
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None

    def _connect(self) -> sqlite3.Connection:
        db = open_to_read(self.path, timeout=_PATIENCE, check_same_thread=False)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version < _OLDEST:
            db.close()
            _upgrade(self.path)
            return self._connect()
        family_functions.add_functions(db)
        json_values.add_functions(db)
        return db


def _upgrade(path: Path) -> None:
    """Add what an older Pitchpipe's tables lack, unless it still runs the experiment."""
    folder = ExperimentFolder(path.parent)
    try:
        folder.own()
    except FolderError as error:
        raise StoreError(
            f"{path} was written by an older Pitchpipe and cannot be upgraded: {error}"
        ) from error
    try:
        Store.open(path).close()
    finally:
        folder.disown()
