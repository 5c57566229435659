"""What goes wrong with a database, in words: which file, what it is, what to do (see also test_sentences.txt)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.store.errors import NotWritableError, StoreError, check_wal, explain, understood
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.store.store import Store

from .kill_points import row, tick


def killed(folder: Path) -> Path:
    """Return the log of a database whose writer was killed, beside that database."""
    store = Store.create(folder / "origin.db", row(), ("default",))
    store.commit(tick())
    for end in ("", "-wal"):
        shutil.copy(folder / f"origin.db{end}", folder / f"experiment.db{end}")
    store.close()
    return folder / "experiment.db-wal"


def readers() -> list[Any]:
    return [Store.view, Store.open, lambda path: ExperimentView(ExperimentFolder(path.parent)).summary()]


@pytest.mark.parametrize("reader", readers(), ids=["view", "resume", "read model"])
@pytest.mark.parametrize(
    ("offset", "what"), [(0, "its header is not valid"), (60, "none of its commits can be read")]
)
def test_damaged_log_is_named_and_left_as_it_is(offset: int, what: str, reader: Any, tmp_path: Path) -> None:
    log = killed(tmp_path)
    Store.view(tmp_path / "experiment.db").close()  # a whole one is fine
    data = log.read_bytes()
    data = data[:offset] + b"\xff" * 30 + data[offset + 30 :]
    log.write_bytes(data)
    (tmp_path / "experiment.db-shm").unlink(missing_ok=True)
    with pytest.raises(StoreError, match=f"experiment.db-wal, which .*, is damaged .{what}"):
        reader(tmp_path / "experiment.db")
    assert log.read_bytes() == data


def test_database_whose_log_was_lost_says_so(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "experiment.db", row(), ("default",))
    copy = tmp_path / "copy" / "experiment.db"
    copy.parent.mkdir()
    copy.write_bytes(store.path.read_bytes())  # without experiment.db-wal, which holds all so far
    with pytest.raises(StoreError, match=r"never started, or experiment\.db-wal beside it was lost"):
        Store.view(copy)
    with ExperimentView(copy.parent) as view, pytest.raises(StoreError, match=r"experiment\.db-wal"):
        view.summary()
    store.close()


def test_database_without_tables_holds_no_experiment(tmp_path: Path) -> None:
    """As a process leaves it that was killed, or had no room, when it made the tables."""
    (tmp_path / "experiment.db").touch()
    for reader in (Store.view, Store.open):
        with pytest.raises(StoreError, match="holds no experiment: it was never started"):
            reader(tmp_path / "experiment.db")


@pytest.mark.parametrize("length", [0, 31])
def test_log_without_a_whole_header_holds_no_commits(length: int, tmp_path: Path) -> None:
    (tmp_path / "experiment.db-wal").write_bytes(b"x" * length)
    check_wal(tmp_path / "experiment.db")


def test_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "experiment.db-wal").mkdir()
    with pytest.raises(StoreError, match=r"experiment\.db-wal cannot be read: Is a directory"):
        check_wal(tmp_path / "experiment.db")


@pytest.mark.parametrize("name", ["SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ"])
def test_disk_that_cannot_be_read_is_not_a_full_one(name: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    path.touch()
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    found = explain(path, error)
    assert isinstance(found, NotWritableError)
    assert (found.what, found.awaited) == (f"{path} cannot be read (disk I/O error)", "the disk")


def test_message_that_is_not_text_is_damage(tmp_path: Path) -> None:
    error = UnicodeDecodeError("utf-8", b"malformed database schema (tri\xffals)", 30, 31, "invalid")
    said = str(explain(tmp_path / "experiment.db", error))
    assert "experiment.db is damaged (malformed database schema (tri\\xffals)): restore it" in said


def test_database_that_is_gone_was_moved(tmp_path: Path) -> None:
    error = explain(tmp_path / "experiment.db", sqlite3.OperationalError("disk I/O error"))
    assert "was moved or deleted while it was in use" in str(error)


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone"), understood(tmp_path / "experiment.db", "status"):
        raise OSError("gone")


def log_of(path: Path, ticks: int) -> bytes:
    """Return the log of a new experiment; its database, at `path`, holds nothing yet."""
    store = Store.create(path.with_name("origin.db"), row(), ("default",))
    for number in range(ticks):
        store.set_name(str(number))
    shutil.copy(store.path, path)
    data = store.path.with_name("origin.db-wal").read_bytes()
    store.close()
    store.path.unlink()
    return data


@pytest.mark.parametrize(
    "kept",
    [lambda data: b"", lambda data: data[:100], lambda data: data, lambda data: bytes(len(data))],
    ids=["no database", "a part of it", "all of it", "NULs"],
)
@pytest.mark.parametrize(
    "cut",
    [
        lambda log: log[:20],
        lambda log: log[:3000],
        lambda log: log[:-1],
        lambda log: bytes(len(log)),
        lambda log: log[:32] + bytes(len(log) - 32),
        lambda log: log[:4000] + bytes(5000) + log[9000:],
    ],
    ids=["a part of its header", "one frame", "all but a byte", "only NULs", "only a header", "a hole"],
)
def test_experiment_that_never_began_says_how_to_begin_it_again(cut: Any, kept: Any, tmp_path: Path) -> None:
    """As a power cut leaves it before anything was committed."""
    path = tmp_path / "an exp" / "experiment.db"
    path.parent.mkdir()
    log = cut(log_of(path, 0))
    path.write_bytes(kept(path.read_bytes()))
    path.with_name("experiment.db-wal").write_bytes(log)
    for reader in readers():
        with pytest.raises(StoreError) as raised:
            reader(path)
        assert "holds no experiment: it was never started" in str(raised.value)
        assert f"(pitchpipe delete '{path.parent}')" in str(raised.value)
        assert "damaged" not in str(raised.value)
        assert path.with_name("experiment.db-wal").read_bytes() == log


@pytest.mark.parametrize("size", [0, None])
def test_experiment_whose_commits_cannot_be_read_is_damaged(size: int | None, tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    log = log_of(path, 1)
    path.write_bytes(path.read_bytes()[:size])
    path.with_name("experiment.db-wal").write_bytes(log[:4000] + bytes(5000) + log[9000:])
    with pytest.raises(StoreError, match="none of its commits can be read"):
        Store.view(path)


def test_log_of_nothing_but_nuls_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    Store.create(path, row(), ("default",)).close()
    path.with_name("experiment.db-wal").write_bytes(bytes(5000))
    Store.view(path).close()
    with closing(Store.open(path)) as again:
        again.commit(tick())
