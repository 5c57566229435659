"""Read-only connections to an experiment's database, shared by the threads of a server, and the stored configuration.

While a connection reads, the manager's write-ahead log cannot be folded back into the database. So reads are short,
connections are few, and none reads while a slow client is written to.
"""

from __future__ import annotations

import math
import queue
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...numerics import mean
from ...protocol import Json, Objective, family_end_of, main_objective, objectives_of, repeat_of
from ..errors import SQLITE_ERRORS, StoreError, empty, explain, understood
from ..folder import ExperimentFolder
from ..opening import open_to_read
from ..paths import FolderError
from ..store import Store
from .json_values import add_json_functions, parsed
from .read_model import Goal

Row = tuple[Any, ...]
_CONNECTIONS = 4
# The tables have had everything that is read here since this version.
_OLDEST = 2
# What was added later, empty: of the connection alone, where a table of the database gives way to it.
_WITH_CODE = 5
_NO_CODE = """
CREATE TEMP VIEW trials AS SELECT *, NULL AS code FROM main.trials;
CREATE TEMP TABLE code_versions (digest, loaded);
CREATE TEMP TABLE starts (time, facts, diff);
"""
# How long a reader waits for a connection, or for the writer while it changes the journal: seconds.
_PATIENCE = 10.0
_PORTION = 500


class Database:
    """Runs queries over one experiment's database, from any thread; raises `StoreError` if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Read once: they never change.
        self._objectives: tuple[Objective, ...] | None = None
        self._repeats: int | None = None
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

    def config(self) -> dict[str, Json]:
        """Return the stored configuration; raise `StoreError` if there is none."""
        row = self.row("SELECT config FROM experiment")
        if row is None:
            raise empty(self.path)
        with understood(self.path, "config"):
            config = parsed(row[0])
            if not isinstance(config, dict):
                raise TypeError("not an object")
            return config

    def objectives(self) -> tuple[Objective, ...]:
        """Return what is optimised and what is limited."""
        if self._objectives is None:
            stored = self.config().get("objectives") or [{"direction": "minimize"}]
            with understood(self.path, "objectives"):
                objectives = objectives_of(stored)
                for one in objectives:
                    if one.direction not in ("minimize", "maximize", None):
                        raise ValueError(f"the direction {one.direction!r}")
                if all(one.direction is None for one in objectives):
                    raise KeyError("direction")
            self._objectives = objectives
        return self._objectives

    def goals(self) -> list[Goal]:
        """Return what is optimised; the first one is what `best` goes by where there is one."""
        return [Goal(one.name, one.direction) for one in self.objectives() if one.direction is not None]

    def main_objective(self) -> str:
        """Return the name of the objective that `default`, `value` and `last` mean."""
        return main_objective(self.objectives()).name

    def repeats(self) -> int:
        """Return how often each configuration is run."""
        if self._repeats is None:
            stored = self.config().get("repeats") or {}
            with understood(self.path, "repeats"):
                self._repeats = int(stored.get("count", 1))
        return self._repeats

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
        if version < _WITH_CODE:
            (query_only,) = db.execute("PRAGMA query_only").fetchone()  # a copy's connection is
            db.executescript(f"PRAGMA query_only = OFF; {_NO_CODE} PRAGMA query_only = {query_only};")
        add_family_functions(db)
        add_json_functions(db)
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


def add_family_functions(db: sqlite3.Connection) -> None:
    """Let statements use `family_of(record)`, `repeat_of(record)`, `family_end_of(record)` and `mean_of(value)`.

    >>> db = sqlite3.connect(":memory:")
    >>> add_family_functions(db)
    >>> db.execute("SELECT family_of(?)", ('{"parameters": {}, "family": 7, "repeat": 2}',)).fetchone()
    (7,)
    """
    db.create_function("family_of", 1, lambda record: (repeat_of(record) or (None,))[0], deterministic=True)
    db.create_function("repeat_of", 1, lambda record: (repeat_of(record) or (None,))[-1], deterministic=True)
    db.create_function("family_end_of", 1, family_end_of, deterministic=True)
    db.create_aggregate("mean_of", 1, _Mean)  # type: ignore[arg-type]


class _Mean:
    """The mean of a column; NULL if there is none."""

    def __init__(self) -> None:
        self._values: list[float] = []

    def step(self, value: float) -> None:
        """Take a value."""
        self._values.append(value)

    def finalize(self) -> float | None:
        """Return the mean."""
        found = mean(self._values) if self._values else math.nan
        return None if math.isnan(found) else found
