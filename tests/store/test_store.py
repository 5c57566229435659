"""The store: what is committed is read back equal, all of a tick or nothing, and problems are explained."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitchpipe.runner.effects import Changes, MetricRow
from pitchpipe.runner.trial import Cause, FailureKind, Trial, TrialStatus, Verdict
from pitchpipe.store import NotWritableError, Store, StoreError, StoreTick
from pitchpipe.store.dispatcher_record import DispatcherRecord, SavedState
from pitchpipe.store.opening import open_to_write
from pitchpipe.store.schema import SCHEMA_VERSION

from .kill_points import a_trial, row

ROW = row(trialConcurrency=2)


def change(path: Path, statement: str, *values: object) -> None:
    """Change a database as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement, values)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    made = Store.create(tmp_path / "experiment.db", ROW, ("default",))
    yield made
    made.close()


def tick(*trials: Trial, metrics: list[MetricRow] | None = None, **values: Any) -> StoreTick:
    values.setdefault("status", "RUNNING")
    return StoreTick(
        changes=Changes(trials={trial.trial_id: trial for trial in trials}, metrics=metrics or []), **values
    )


_TEXT = st.text(max_size=20)
_TIMES = st.none() | st.floats(0, 2e9)
_TRIALS = st.builds(
    Trial,
    trial_id=st.just("AbCdE"),
    sequence_id=st.integers(0, 10**6),
    parameter_id=st.none() | st.integers(0, 10**9) | st.sampled_from(["2_0_1", "7"]),
    record=_TEXT,
    created=st.floats(0, 2e9),
    status=st.sampled_from(TrialStatus),
    attempt=st.integers(0, 9),
    slot=st.none() | st.integers(0, 99),
    agent=st.none() | st.just("0-1"),
    gpus=st.none() | st.lists(st.integers(0, 7), max_size=3).map(tuple),
    start_time=_TIMES,
    end_time=_TIMES,
    next_sequence=st.integers(0, 10**6),
    finals=st.integers(0, 2),
    final=st.none() | _TEXT,
    values=st.none() | st.tuples(st.floats(allow_nan=False)),
    verdict=st.none() | st.builds(Verdict, st.sampled_from(Cause), _TEXT, st.none() | st.sampled_from(FailureKind)),
    reason=_TEXT,
    kind=st.none() | st.sampled_from(FailureKind),
    exit_code=st.none() | st.integers(-64, 255),
    pid=st.none() | st.integers(1, 2**22),
    error=st.none() | _TEXT,
    failed=st.dictionaries(st.sampled_from(FailureKind), st.integers(1, 3), max_size=2),
    checkpoint=st.none() | st.just("trials/7/checkpoints/1-1"),
    checkpoint_sequence=st.integers(0, 9),
    copy_of=st.none() | st.just("trials/0/checkpoints/1-4"),
)  # fmt: skip


@settings(max_examples=50)
@given(_TRIALS)
def test_trial_is_read_back_equal(trial: Trial) -> None:
    with TemporaryDirectory() as folder:
        store = Store.create(Path(folder, "experiment.db"), ROW, ("default",))
        store.commit(tick(trial))
        assert list(store.trials()) == [trial]
        store.close()


def test_later_tick_replaces_what_changed(store: Store) -> None:
    trial = a_trial()
    store.commit(tick(trial))
    trial.move(Cause.STARTED)
    trial.final, trial.values = "0.5", (0.5,)
    store.commit(tick(trial))
    (found,) = store.trials()
    assert (found.status, found.final, found.values) == (TrialStatus.RUNNING, "0.5", (0.5,))
    assert store.counts() == {"RUNNING": 1}


def test_metrics_come_back_in_order_and_once(store: Store) -> None:
    trial = a_trial(3)
    rows = [
        MetricRow(trial=trial, attempt=1, kind="PERIODICAL", sequence=n, value=str(n), time=5.0 + n)
        for n in range(3)
    ]
    rows.append(MetricRow(trial=trial, attempt=1, kind="FINAL", sequence=0, value="NaN", time=9.0))
    store.commit(tick(trial, metrics=rows[:2]))
    store.commit(tick(trial, metrics=rows[1:]))  # an agent said one of them again
    expected = [("PERIODICAL", 0, "0"), ("PERIODICAL", 1, "1"), ("PERIODICAL", 2, "2"), ("FINAL", 0, "NaN")]
    assert [(row[1], row[2], row[4]) for row in store.metrics(3)] == expected


def test_tick_that_fails_leaves_nothing(store: Store) -> None:
    store.commit(tick(commands=[(1, "IN", "{}")]))
    with pytest.raises(StoreError):
        store.commit(tick(a_trial(), commands=[(1, "GE", "1")]))  # a number is given once
    assert list(store.trials()) == []
    store.commit(tick(a_trial(), commands=[(2, "GE", "1")]))
    assert store.commands() == [(1, "IN", "{}"), (2, "GE", "1")]


def test_experiment_row_is_read_back(store: Store) -> None:
    snapshot = '{"requested": 2}'
    given: dict[str, Any] = {"reason": "why", "error": "trace", "run_time": 3.5, "end_time": 7.0}
    store.commit(tick(status="ERROR", snapshot=snapshot, **given))
    found = store.experiment()
    assert (found.id, found.name, found.config, found.token) == (
        "exp",
        "first",
        {"trialConcurrency": 2},
        "secret",
    )
    assert (found.status, {name: getattr(found, name) for name in given}) == ("ERROR", given)
    assert found.snapshot == {"requested": 2}


def test_dispatcher_record_can_be_replaced(store: Store) -> None:
    store.commit(tick(commands=[(1, "IN", "{}")], replies=[(1, "TR", "{}")]))
    store.begin_dispatcher_record([(1, "IN", '{"x": 1}')])
    assert store.dispatcher_record() == DispatcherRecord([(1, "IN", '{"x": 1}')], [])


def test_replies_since_a_checkpoint_are_those_that_either_queue_is_not_past(store: Store) -> None:
    replies = [(n, "TR", "{}") for n in range(1, 7)]
    store.commit(tick(commands=[(1, "IN", "{}"), (2, "GE", "1")], replies=replies))
    for default, assessor in [(2, 4), (4, 2)]:
        record = store.dispatcher_record(SavedState(1, "one.pkl", default, assessor))
        assert [n for n, _, _ in record.commands] == [2]
        assert record.replies == replies[2:]


def test_viewer_reads_while_the_manager_writes_and_cannot_write(store: Store) -> None:
    store.commit(tick(a_trial(0)))
    viewer = Store.view(store.path)
    assert len(list(viewer.trials())) == 1
    store.commit(tick(a_trial(1)))
    assert len(list(viewer.trials())) == 2
    with pytest.raises(StoreError, match="cannot be written"):
        viewer.commit(tick(a_trial(2)))
    viewer.close()


def test_finished_database_is_one_file_that_can_be_read_where_nothing_can_be_written(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    store = Store.create(tmp_path / "experiment.db", ROW, ("default",))
    store.commit(tick(a_trial(0)))
    store.close()
    viewer = Store.view(tmp_path / "experiment.db")
    assert len(list(viewer.trials())) == 1
    viewer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["experiment.db"]
    again = Store.open(tmp_path / "experiment.db")
    again.commit(tick(a_trial(1)))
    assert connections[-1].execute("PRAGMA journal_mode").fetchone() == ("wal",)
    again.close()


def test_database_of_a_newer_version_is_refused(store: Store, tmp_path: Path) -> None:
    change(store.path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for opening in (Store.open, Store.view):
        with pytest.raises(StoreError, match="newer Pitchpipe"):
            opening(store.path)


def test_damaged_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    path.write_bytes(os.urandom(8192))
    with pytest.raises(StoreError, match=r"experiment\.db is damaged"):
        Store.open(path)


@pytest.mark.parametrize("value", ["{", "[]", b"\xff\xfe\xfd"])
@pytest.mark.parametrize("column", ["config", "snapshot"])
def test_row_that_is_not_json_is_damage(store: Store, column: str, value: str | bytes) -> None:
    change(store.path, f"UPDATE experiment SET {column} = ?", value)
    with pytest.raises(StoreError, match=rf"experiment\.db is damaged \({column}"):
        store.experiment()


def test_text_that_is_not_utf8_is_explained(store: Store) -> None:
    """Python's own sqlite3 raises this error: it has no code."""
    change(store.path, "UPDATE experiment SET name = CAST(x'ff' AS TEXT)")
    with pytest.raises(StoreError, match=r"experiment\.db"):
        store.experiment()


@pytest.mark.parametrize("table", ["commands", "replies", "dispatcher_checkpoints"])
def test_dispatcher_record_that_cannot_be_read_is_a_store_error(store: Store, table: str) -> None:
    change(store.path, f"DROP TABLE {table}")
    reading = {
        "commands": store.commands,
        "replies": store.replies,
        "dispatcher_checkpoints": store.dispatcher_checkpoint,
    }
    with pytest.raises(StoreError, match=table):
        reading[table]()


def test_deleted_database_is_not_waited_for(
    connections: list[sqlite3.Connection], store: Store, tmp_path: Path
) -> None:
    connections[-1].execute("PRAGMA max_page_count = 1")
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="was moved or deleted") as raised:
        store.commit(tick(*(a_trial(number, error="x" * 4000) for number in range(50))))
    assert not isinstance(raised.value, NotWritableError)


def test_commit_to_a_database_whose_folder_was_deleted_fails(store: Store, tmp_path: Path) -> None:
    store.commit(tick(a_trial(0)))
    shutil.rmtree(tmp_path)
    with pytest.raises(StoreError, match="was moved or deleted while it was in use"):
        store.commit(tick(a_trial(1)))


def test_watched_database_is_missed_without_a_commit(store: Store, tmp_path: Path) -> None:
    async def watched() -> None:
        watching = asyncio.ensure_future(store.watch())
        await asyncio.sleep(0)
        assert not watching.done()
        tmp_path.rename(tmp_path.with_name("elsewhere"))
        await asyncio.wait_for(watching, 30)

    with pytest.raises(StoreError, match="move it back and resume"):
        asyncio.run(watched())


def test_missing_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not the folder of an experiment"):
        Store.open(tmp_path / "experiment.db")


def test_full_disk_is_explained_and_leaves_the_last_tick(
    connections: list[sqlite3.Connection], store: Store
) -> None:
    store.commit(tick(a_trial(0)))
    (pages,) = connections[-1].execute("PRAGMA page_count").fetchone()
    connections[-1].execute(f"PRAGMA max_page_count = {pages}")
    big = [a_trial(number, error="x" * 4000) for number in range(1, 50)]
    with pytest.raises(StoreError, match=r"is full: make room and resume"):
        store.commit(tick(*big))
    assert len(list(store.trials())) == 1


@pytest.mark.parametrize(
    ("config", "synchronous"), [({}, 1), ({"durability": "process"}, 1), ({"durability": "power"}, 2)]
)
def test_every_writing_connection_syncs_as_the_configuration_says(
    config: dict[str, Any], synchronous: int, tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    store = Store.create(tmp_path / "experiment.db", row(**config), ("default",))
    for _ in range(3):
        assert connections[-1].execute("PRAGMA synchronous").fetchone() == (synchronous,)
        assert connections[-1].execute("PRAGMA journal_mode").fetchone() == ("wal",)
        store.close()
        store = Store.open(tmp_path / "experiment.db")
    store.close()


@pytest.mark.parametrize(("durability", "later"), [("process", "NORMAL"), ("power", "FULL")])
def test_first_commit_is_synced_whatever_is_synced_later(
    durability: str, later: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: dict[str, str] = {}  # what is done, and how it is synced
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        db = connect(*args, **options)
        db.set_trace_callback(note)
        return db

    def note(statement: str) -> None:
        verb, _, mode = statement.rpartition(" = ")
        if verb == "PRAGMA synchronous":
            modes["now"] = mode
        else:
            modes[statement.partition("(")[0]] = modes.get("now", "")

    monkeypatch.setattr(sqlite3, "connect", traced)
    Store.create(tmp_path / "experiment.db", row(durability=durability), ("a",)).close()
    assert modes["PRAGMA journal_mode = WAL"] == modes["INSERT INTO experiment "] == "FULL"
    assert modes["now"] == later


def test_several_objectives_have_a_value_each(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "experiment.db", ROW, ("default", "cost"))
    store.commit(tick(a_trial(0, values=(0.5, 3.0)), a_trial(1)))
    assert [trial.values for trial in store.trials()] == [(0.5, 3.0), None]
    store.close()


@pytest.mark.parametrize("numbers", [(1, 2, 4), (2, 3), ()], ids=["middle", "head", "all"])
def test_gap_in_the_commands_is_damage(numbers: tuple[int, ...], store: Store) -> None:
    store.begin_dispatcher_record([(number, "IN", "{}") for number in numbers])
    store.commit(tick(replies=[(1, "ID", "{}")]))
    with pytest.raises(StoreError, match="commands: one is missing"):
        store.dispatcher_record()


def test_commit_without_a_free_descriptor_says_so_and_succeeds_when_there_is_one(tmp_path: Path) -> None:
    Store.create(tmp_path / "experiment.db", ROW, ("default",)).close()
    store = Store(tmp_path / "experiment.db", open_to_write(tmp_path / "experiment.db"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(lowest := os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        with pytest.raises(NotWritableError) as raised:
            store.commit(tick(a_trial(0)))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert raised.value.what == f"{store.path} cannot be opened (Too many open files)"
    assert raised.value.awaited == "a free file descriptor"
    store.commit(tick(a_trial(0)))
    assert len(list(store.trials())) == 1
    store.close()


def test_last_two_checkpoints_of_the_dispatcher_are_kept(store: Store) -> None:
    saved = [SavedState(n, f"dispatcher-{n}.pkl", n, n) for n in (3, 5, 8)]
    store.commit(tick(dispatcher_checkpoints=saved))
    assert store.prune_dispatcher_checkpoints() == ["dispatcher-3.pkl"]
    assert store.dispatcher_checkpoint() == saved[2]
    store.drop_dispatcher_checkpoint(saved[2])
    assert store.dispatcher_checkpoint() == saved[1]
