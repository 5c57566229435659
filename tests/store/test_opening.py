"""Opening and closing the database: at no moment of it does a kill make it unreadable, wherever its folder is then."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.store.errors import NotWritableError, StoreError
from pitchpipe.store.opening import end_log, fit_log, fold_log, open_to_read, open_to_write
from pitchpipe.store.store import Store

from . import kill_points
from .kill_points import TRIALS, create, leave_journal, read_model, row, state_of, tick, view

traced = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ptrace of Linux")


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """Return the folder of an experiment that is closed."""
    folder = tmp_path / "closed"
    folder.mkdir()
    create(folder / "experiment.db")
    return folder


def kills(act: str, source: Path, folder: Path) -> dict[str, Any]:
    """Return what `kill_points` found."""
    command = [sys.executable, "-P", kill_points.__file__, act, str(source), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@traced
@pytest.mark.parametrize("act", ["create", "rename"])
def test_process_killed_before_any_system_call_leaves_a_database_that_can_be_read(
    act: str, closed: Path, tmp_path: Path
) -> None:
    source = closed
    if act == "create":
        (source := tmp_path / "empty").mkdir()
    found = kills(act, source, tmp_path / "killed")
    assert found["wrong"] == []
    assert {"0101 ", "0202 ", "0202  -shm -wal", "0202  -wal"} <= set(found["states"])
    assert not any("journal" in state for state in found["states"])


@traced
def test_journal_that_an_earlier_version_left_is_rolled_back_by_every_reader(
    closed: Path, tmp_path: Path
) -> None:
    found = kills("rename as before", closed, tmp_path / "killed")
    assert found["wrong"] == []
    assert {"0101  -journal", "0202  -journal"} <= set(found["states"])


def leave_header(path: Path) -> None:
    with closing(open_to_write(path)):
        shutil.copyfile(path, f"{path}.kept")
    Path(f"{path}.kept").rename(path)


def leave_log(path: Path, *more: str) -> None:
    store = Store.open(path)
    store.set_name("second")
    for end in ("", "-wal", *more):
        shutil.copyfile(f"{path}{end}", f"{path}{end}.kept")
    store.close()
    for end in ("", "-wal", *more):
        Path(f"{path}{end}.kept").rename(f"{path}{end}")


# How a database is left, which files there are then, and the name of its experiment.
LEFT = {
    "closed": (lambda path: None, "0101 ", "first"),
    "journal": (leave_journal, "0101  -journal", "first"),
    "header": (leave_header, "0202 ", "first"),
    "log": (leave_log, "0202  -wal", "second"),
    "log and index": (lambda path: leave_log(path, "-shm"), "0202  -shm -wal", "second"),
}
left = pytest.mark.parametrize(("leave", "state", "name"), LEFT.values(), ids=LEFT)


@left
def test_every_reader_finds_all_whatever_was_left(leave: Any, state: str, name: str, closed: Path) -> None:
    path = closed / "experiment.db"
    leave(path)
    assert state_of(path) == state
    assert (view(path), read_model(path), kill_points.writer(path)) == ((name, TRIALS),) * 3
    assert state_of(path) == "0101 "


@left
def test_every_reader_finds_all_on_a_medium_that_cannot_be_written(
    leave: Any, state: str, name: str, closed: Path, medium: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(closed / "experiment.db")
    (scratch := closed.with_name("scratch")).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    shutil.copytree(closed, medium / "copy")
    subprocess.run(["mount", "-o", "remount,ro", medium], check=True)
    path = medium / "copy" / "experiment.db"
    assert (view(path), read_model(path)) == ((name, TRIALS),) * 2
    with pytest.raises(NotWritableError, match="cannot be written"):
        kill_points.rename(path)
    assert state_of(path) == state
    assert list(scratch.iterdir()) == []


def test_database_that_can_be_read_nowhere_says_why(
    closed: Path, medium: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_log(closed / "experiment.db")
    shutil.copytree(closed, medium / "copy")
    subprocess.run(["mount", "-o", "remount,ro", medium], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(medium))
    with pytest.raises(StoreError, match=r"experiment\.db cannot be read: Read-only file system"):
        Store.view(medium / "copy" / "experiment.db")


def test_header_changes_in_one_write_and_without_a_file(tmp_path: Path) -> None:
    """The writer's connection names the files that it opens: there is no journal among them."""
    path = tmp_path / "experiment.db"
    db = open_to_write(path)
    assert (db.execute("PRAGMA journal_mode").fetchone(), path.stat().st_size) == (("wal",), 2048)
    end_log(db)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("memory",)
    db.close()
    assert state_of(path) == "0101 "


def test_second_writer_leaves_the_log_of_the_first(closed: Path) -> None:
    first = Store.open(closed / "experiment.db")
    second = Store.open(closed / "experiment.db")
    second.close()
    assert state_of(closed / "experiment.db") == "0202  -shm -wal"
    first.commit(tick())
    first.close()
    assert state_of(closed / "experiment.db") == "0101 "


def test_database_with_a_reader_keeps_its_log_when_it_is_closed(closed: Path) -> None:
    store = Store.open(closed / "experiment.db")
    with closing(open_to_read(store.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM trials").fetchone()
        store.set_name("second")
        store.close()
        assert reader.execute("SELECT name FROM experiment").fetchone() == ("first",)
    assert view(closed / "experiment.db") == ("second", TRIALS)


def test_log_stays_small_on_a_small_disk(medium: Path) -> None:
    store = Store.create(medium / "experiment.db", row(), ("default",))
    for number in range(1000):  # 4 MiB of log if it were never folded
        store.commit(tick(str(number)))
    assert store.path.with_name("experiment.db-wal").stat().st_size < 3 * 2**20 / 6
    store.close()


def test_log_gives_its_room_back_when_there_is_no_more(medium: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(medium / "experiment.db", row(), ("default",))
    store.commit(tick("0" * 1000))
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store._db.execute("PRAGMA wal_autocheckpoint = 0")
    fold, folded = fold_log, list[int]()

    def folding(db: sqlite3.Connection) -> None:
        folded.append(store.path.with_name("experiment.db-wal").stat().st_size)
        fold(db)

    monkeypatch.setattr("pitchpipe.store.store.fold_log", folding)
    for number in range(1500):
        store.commit(tick(str(number) * 250))
    (size, *_) = folded
    assert size > 2 * 2**20
    assert [trial.reason for trial in store.trials()] == ["1499" * 250] * TRIALS
    store.close()


def test_log_may_use_a_part_of_what_is_free(tmp_path: Path, medium: Path) -> None:
    with (
        closing(open_to_write(tmp_path / "large.db")) as large,
        closing(open_to_write(medium / "small.db")) as db,
    ):
        fit_log(db, medium / "small.db")
        assert large.execute("PRAGMA wal_autocheckpoint").fetchone() == (8000,)
        assert 64 <= db.execute("PRAGMA wal_autocheckpoint").fetchone()[0] <= 3 * 2**20 / 2048 / 8
