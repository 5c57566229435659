"""The steps that bring a database of any version to the present one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pitchpipe.runner import Cause, Verdict
from pitchpipe.store import Store
from pitchpipe.store.reading import ExperimentView
from pitchpipe.store.schema import MIGRATIONS, SCHEMA_VERSION

from .kill_points import row

NEW = "INSERT INTO experiment (id, status, config, token, created) VALUES ('exp', 'RUNNING', '{}', 't', 1)"


def tables(path: Path) -> set[tuple[str, str]]:
    """Return each table with each of its columns."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {(name, column[1]) for name in names for column in db.execute(f"PRAGMA table_info({name})")}


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_database_of_any_version_gets_the_tables_of_a_new_one(version: int, tmp_path: Path) -> None:
    Store.create(tmp_path / "new.db", row(), ("default",)).close()
    with closing(sqlite3.connect(tmp_path / "old.db")) as db:
        db.executescript("".join(MIGRATIONS[:version]) + f"PRAGMA user_version = {version};")
        db.execute(NEW)
        db.commit()
    Store.open(tmp_path / "old.db").close()
    assert tables(tmp_path / "old.db") == tables(tmp_path / "new.db")


def test_results_of_the_first_version_count_as_sent_to_the_dispatcher(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "experiment.db")) as db:
        db.executescript(f"{MIGRATIONS[0]} PRAGMA user_version = 1;")
        db.execute(NEW)
        db.execute(
            "INSERT INTO trials (sequence_id, trial_id, status, parameter_id, record, created, attempt,"
            " next_sequence, finals) VALUES (0, 'AbCdE', 'RUNNING', '0', '{}', 1.0, 1, 5, 0)"
        )
        db.commit()
    store = Store.open(tmp_path / "experiment.db")
    (trial,) = store.trials()
    store.close()
    assert (trial.next_unsent, trial.next_sequence) == (5, 5)


def test_words_of_the_third_version_are_read_and_become_those_of_today(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("".join(MIGRATIONS[:3]) + "PRAGMA user_version = 3;")
        db.execute(NEW)
        db.execute(
            "INSERT INTO trials (sequence_id, trial_id, status, parameter_id, record, created, attempt,"
            " next_sequence, finals, told, revivals, verdict) VALUES (0, 'AbCdE', 'RUNNING', '0',"
            """ '{"parameters": {}}', 1.0, 1, 7, 0, 5, 2, '["condemned by the assessor", "bad", null]')"""
        )
        db.commit()
    with ExperimentView(tmp_path) as view:
        assert view.trial(0).user_retries == 2
    store = Store.open(path)
    (trial,) = store.trials()
    store.close()
    assert (trial.next_unsent, trial.user_retries) == (5, 2)
    assert trial.verdict == Verdict(Cause.EARLY_STOP, "bad")
    with ExperimentView(tmp_path) as view:
        assert view.trial(0).user_retries == 2
