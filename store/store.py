"""The experiment's database: the single source of truth, written by one manager, in one transaction a tick.

* One process at a time writes, the one that holds the folder's lock; all others have a `view`, which cannot change
  anything and never waits for the writer, nor lets it wait.
* A tick is all or nothing. What the manager does to the world, it does after `commit` has returned: so a manager that
  is killed has done nothing that the next one cannot read here.
* `commit` raises `NotWritableError` when nothing was written and the same tick may be written later (a full disk), and
  any other `StoreError` when it cannot be written at all: it is damaged, or not where it was.
* After `commit` a tick survives the end of the process. Whether it survives a power cut, too, is the user's choice
  (`survives_power_cut`): forcing each tick to the disk takes longer than all the rest of it.
* Values are plain columns that SQL can ask for; what only the runner reads is one snapshot, in JSON, in the same tick.
* A row that cannot be understood is damage, and is reported with its table. Nothing is skipped or mended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from ..protocol import Config, JsonObject, repeat_of
from ..runner import ExperimentStatus, MetricRow, Trial
from .dispatcher_record import DispatcherRecord, SavedState
from .errors import (
    NOT_UNDERSTOOD,
    SQLITE_ERRORS,
    NotWritableError,
    StoreError,
    damaged,
    empty,
    explain,
    moved,
    understood,
)
from .opening import check_version, end_log, fit_log, fold_log, open_to_read, open_to_write
from .schema import MIGRATIONS, SCHEMA_VERSION
from .table_rows import SELECT_TRIALS, StoreTick, row_to_trial, rows_of

# The writer of a file gets no event when the folder is deleted: seconds between two looks.
_LOOK_EVERY = 1.0


@dataclass(slots=True, kw_only=True)
class ExperimentRow:
    """The row of the experiment itself."""

    id: str
    name: str | None
    status: str
    config: JsonObject
    token: str
    created: float
    reason: str = ""
    error: str = ""
    end_time: float | None = None
    run_time: float = 0.0
    snapshot: JsonObject | None = None


class Store:
    """Reads and writes an experiment's database."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        objectives: Sequence[str] = ("default",),
        *,
        is_view: bool = False,
    ) -> None:
        self.path = path
        self._file = str(path)
        self.objectives = tuple(objectives)
        self._db = connection
        self._is_view = is_view
        self.survives_power_cut = True

    @classmethod
    def create(cls, path: Path, row: ExperimentRow, objectives: Sequence[str]) -> Store:
        """Make the database of a new experiment; raises `StoreError` where it cannot be written."""
        with _explained_at_creation(path):
            _make_private(path)
            db = open_to_write(path)
            store = cls(path, db, objectives)
            with store._closed_if_it_fails():
                store._make(row)
                store._sync_as_configured(row.config)
            return store

    @classmethod
    def open(cls, path: Path, objectives: Sequence[str] = ("default",)) -> Store:
        """Open the database of an experiment to write to it, as durably as its configuration says."""
        cls.view(path).close()  # raises what is wrong; a writer that finds the log damaged would remove it
        with _explained(path):
            store = cls(path, open_to_write(path), objectives)
            with store._closed_if_it_fails():
                store._migrate()
                store._sync_as_configured(store.experiment().config)
            return store

    @classmethod
    def view(cls, path: Path) -> Store:
        """Open the database read-only; its writer is not disturbed, and nothing can be changed."""
        return cls(path, open_to_read(path), is_view=True)

    def close(self) -> None:
        """Close the database, and fold its log into it unless another process reads it now."""
        if not self._is_view:
            with contextlib.suppress(sqlite3.Error):
                end_log(self._db)
        self._db.close()

    @contextmanager
    def _closed_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def commit(self, tick: StoreTick) -> None:
        """Write a tick in one transaction: all of it or nothing."""
        self._check_place()
        try:
            self._write(tick)
        except sqlite3.Error as error:
            if not isinstance(why := explain(self.path, error), NotWritableError):
                raise why from error
            with _explained(self.path):
                fold_log(self._db)  # it may hold the room that is missing
                self._write(tick)

    def _write(self, tick: StoreTick) -> None:
        with self._transaction() as db:
            for statement, rows in rows_of(tick, self.objectives):
                db.executemany(statement, rows)
            db.execute(
                "UPDATE experiment SET status=?, reason=?, error=?, run_time=?, end_time=?, snapshot=?",
                (tick.status, tick.reason, tick.error, tick.run_time, tick.end_time, tick.snapshot),
            )

    def version(self) -> int:
        """Return a number that changes whenever another process commits."""
        with _explained(self.path):
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    async def watch(self) -> None:
        """Raise `StoreError` when the database is moved or deleted: later writes would be lost."""
        while True:
            self._check_place()
            fit_log(self._db, self.path)
            await asyncio.sleep(_LOOK_EVERY)

    def _check_place(self) -> None:
        if os.access(self._file, os.F_OK):
            return  # nearly always, and twice as fast
        try:
            os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise moved(self.path) from None
        except OSError:
            return  # it is there, but may not be read at present

    def accept(self, snapshot: str, config: str | None) -> None:
        """Store what a user asked for, in a snapshot, and the configuration (canonical JSON) if it changes."""
        with _explained(self.path):
            self._db.execute(
                "UPDATE experiment SET snapshot=?, config=coalesce(?, config)", (snapshot, config)
            )

    def note_start(self, time: float, facts: str, diff: str) -> None:
        """Store the facts of this start of a manager (JSON), and what its code differs from the commit."""
        with _explained(self.path):
            self._db.execute("INSERT INTO starts VALUES (?, ?, ?)", (time, facts, diff))

    def set_config(self, config: JsonObject) -> None:
        """Replace the configuration, of an experiment that is extended."""
        with _explained(self.path):
            self._db.execute("UPDATE experiment SET config=?", (json.dumps(config),))

    def set_name(self, name: str | None) -> None:
        """Rename an experiment that does not run."""
        with _explained(self.path):
            self._db.execute("UPDATE experiment SET name=?", (name,))

    def set_status(self, status: str, reason: str) -> None:
        """Store how an experiment ended that a manager no longer runs."""
        with _explained(self.path):
            self._db.execute("UPDATE experiment SET status=?, reason=?", (status, reason))

    def begin_dispatcher_record(self, commands: Sequence[tuple[int, str, str]]) -> None:
        """Replace the recorded commands and replies of the dispatcher by these commands."""
        with _explained(self.path), self._transaction() as db:
            db.execute("DELETE FROM commands")
            db.execute("DELETE FROM replies")
            db.execute("DELETE FROM dispatcher_checkpoints")
            db.executemany("INSERT INTO commands VALUES (?, ?, ?)", commands)

    def dispatcher_record(self, saved: SavedState | None = None) -> DispatcherRecord:
        """Return the commands and replies, from the beginning or since a checkpoint; `StoreError` if one is missing."""
        commands = self.commands() if saved is None else self.commands(saved.n)
        first_reply = 0 if saved is None else min(saved.default_reply, saved.assessor_reply)
        replies = self.replies(first_reply)
        first = 1 if saved is None else saved.n + 1
        is_whole = [n for n, _, _ in commands] == [*range(first, first + len(commands))]
        if not is_whole or (replies and saved is None and not commands):
            raise damaged(self.path, "commands: one is missing")
        return DispatcherRecord(commands, replies, saved)

    def experiment(self) -> ExperimentRow:
        """Return the experiment's row."""
        names = [field.name for field in fields(ExperimentRow)]
        with _explained(self.path):
            row = self._db.execute(f"SELECT {', '.join(names)} FROM experiment").fetchone()
        if row is None:
            raise empty(self.path)
        values = dict(zip(names, row, strict=True))
        for name in ("config", "snapshot"):
            values[name] = self._object(name, values[name])
        with understood(self.path, "status"):
            ExperimentStatus(values["status"])
        return ExperimentRow(**values)

    def trials(self) -> Iterator[Trial]:
        """Yield all trials by sequence id, as the runner had them."""
        with _explained(self.path):
            by_objective = [self._values_of(name) for name in self.objectives]
            for row in self._db.execute(SELECT_TRIALS):
                try:
                    trial = row_to_trial(row)
                except NOT_UNDERSTOOD as error:
                    raise damaged(self.path, f"trial {row[1]}: {error}") from error
                number = trial.sequence_id
                values = tuple(by_trial[number] for by_trial in by_objective if number in by_trial)
                if len(values) == len(by_objective):
                    trial.values = values
                yield trial

    def metrics(
        self, sequence_id: int | None = None, *, superseded: bool = False
    ) -> Iterator[tuple[int, str, int, int, str, float]]:
        """Yield (sequence_id, kind, sequence, attempt, value as JSON text, time) of one trial or all, in order.

        Results that a later attempt reported again are left out unless `superseded` is true.
        """
        where = " WHERE 1" if superseded else " WHERE NOT superseded"
        where += "" if sequence_id is None else " AND sequence_id = ?"
        with _explained(self.path):
            yield from self._db.execute(
                f"SELECT sequence_id, kind, sequence, attempt, value, time FROM metrics{where}"
                " ORDER BY sequence_id, kind DESC, sequence, attempt",
                () if sequence_id is None else (sequence_id,),
            )

    def results(self, trials: Iterable[Trial]) -> Iterator[MetricRow]:
        """Yield the results of all trials, in the order in which they were reported."""
        by_number = {trial.sequence_id: trial for trial in trials}
        with understood(self.path, "metrics"):
            rows = sorted(self.metrics(), key=lambda row: row[-1])
            results = [(by_number[row[0]], row) for row in rows]
        for trial, (_, kind, sequence, attempt, value, time) in results:
            yield MetricRow(
                trial=trial, attempt=attempt, kind=kind, sequence=sequence, value=value, time=time
            )

    def counts(self) -> dict[str, int]:
        """Return the number of trials by status."""
        with _explained(self.path):
            return dict(self._db.execute("SELECT status, count(*) FROM trials GROUP BY status"))

    def has_several_codes(self) -> bool:
        """Return whether trials did not all load the same files and packages."""
        with _explained(self.path):
            return self._db.execute("SELECT count(*) FROM code_versions").fetchone()[0] > 1

    def has_trials_to_run_again(self) -> bool:
        """Return whether the end of the experiment cancelled trials that a resume runs again."""
        with _explained(self.path):
            cancelled = self._db.execute(
                "SELECT record FROM trials WHERE status = 'SYS_CANCELED' AND budget IS NULL"
            )
            return any(repeat_of(record) is None for (record,) in cancelled)

    def dispatcher_checkpoint(self) -> SavedState | None:
        """Return the last valid checkpoint of the dispatcher."""
        with _explained(self.path):
            row = self._db.execute(
                "SELECT n, path, default_reply, assessor_reply FROM dispatcher_checkpoints ORDER BY n DESC LIMIT 1"
            ).fetchone()
        return None if row is None else SavedState(*row)

    def prune_dispatcher_checkpoints(self, keep: int = 2) -> list[str]:
        """Forget all checkpoints of the dispatcher but the last `keep`; return the files of those forgotten."""
        older = "(SELECT n FROM dispatcher_checkpoints ORDER BY n DESC LIMIT -1 OFFSET ?)"
        with _explained(self.path):
            forgotten = self._db.execute(
                f"DELETE FROM dispatcher_checkpoints WHERE n IN {older} RETURNING path", (keep,)
            )
            return [path for (path,) in forgotten]

    def drop_dispatcher_checkpoint(self, saved: SavedState) -> None:
        """Forget a checkpoint of the dispatcher that cannot be used."""
        with _explained(self.path):
            self._db.execute("DELETE FROM dispatcher_checkpoints WHERE n = ?", (saved.n,))

    def commands(self, after: int = 0) -> list[tuple[int, str, str]]:
        """Return the commands with a number above `after`, as (n, code, payload)."""
        return self._recorded("commands", after)

    def replies(self, after: int = 0) -> list[tuple[int, str, str]]:
        """Return the replies with a number above `after`, as (n, code, payload)."""
        return self._recorded("replies", after)

    def _recorded(self, table: str, after: int) -> list[tuple[int, str, str]]:
        with _explained(self.path):
            rows = f"SELECT n, code, payload FROM {table} WHERE n > ? ORDER BY n"
            return self._db.execute(rows, (after,)).fetchall()

    def _object(self, name: str, text: str | bytes) -> JsonObject:
        """Return the JSON object in a column of the experiment's row."""
        with understood(self.path, name):
            value = json.loads(text)
            if not isinstance(value, dict):
                raise TypeError("not an object")
            return value

    def _values_of(self, objective: str) -> dict[int, float]:
        """Return the value of an objective by trial."""
        rows = self._db.execute(
            "SELECT sequence_id, value FROM objective_values WHERE name = ?", (objective,)
        )
        with understood(self.path, "objective_values"):
            return {sequence_id: 0.0 + value for sequence_id, value in rows}

    def _transaction(self) -> sqlite3.Connection:
        """Begin a transaction; as a context, the connection commits it, or rolls it back after an error."""
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def _sync_as_configured(self, config: Config) -> None:
        """Sync each commit, unless the configuration of the experiment lets a power cut take the last ones.

        Then NORMAL: the log is synced where it begins and before it is folded, so that a cut leaves a database that
        can be read. The first commit was synced: the experiment is known, however much of the log is lost.
        """
        if not _survives_power_cut(config):
            self._db.execute("PRAGMA synchronous = NORMAL")
            self.survives_power_cut = False

    def _make(self, row: ExperimentRow) -> None:
        """Make the tables and the experiment's row: both, or nothing."""
        self._db.executescript(
            f"BEGIN IMMEDIATE; {''.join(MIGRATIONS)} PRAGMA user_version = {SCHEMA_VERSION};"
        )
        with self._db as db:
            db.execute(
                "INSERT INTO experiment (id, name, status, config, token, created, snapshot)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    row.id,
                    row.name,
                    row.status,
                    json.dumps(row.config),
                    row.token,
                    row.created,
                    json.dumps(row.snapshot or {}),
                ),
            )

    def _migrate(self) -> None:
        version = check_version(self.path, self._db)
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            self._db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")


def _survives_power_cut(config: Config) -> bool:
    """Tell whether what is committed is to survive a power cut, not only killed processes."""
    return config.get("durability", "process") != "process"


def _make_private(path: Path) -> None:
    """Make an empty file that only its owner reads; SQLite gives its other files the same mode."""
    with contextlib.suppress(OSError):  # SQLite tries the same, and says why it cannot
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


@contextmanager
def _explained_at_creation(path: Path) -> Iterator[None]:
    """Explain errors of SQLite; a full disk is final here, as there is no experiment to resume."""
    try:
        with _explained(path):
            yield
    except NotWritableError as error:
        raise StoreError(f"{error.what}: no experiment can be made here") from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except SQLITE_ERRORS as error:
        raise explain(path, error) from error
