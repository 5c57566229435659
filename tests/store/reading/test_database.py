"""Databases that cannot be read, or must be upgraded first; readers do not disturb the manager."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pitchpipe.store.errors import StoreError
from pitchpipe.store.folder import ExperimentFolder
from pitchpipe.store.reading.view import ExperimentView
from pitchpipe.store.schema import MIGRATIONS, SCHEMA_VERSION

from ...stored import MadeExperiment, a_trial

OLD = (
    f"{MIGRATIONS[0]} INSERT INTO experiment (id, status, config, token, created, end_time)"
    """ VALUES ('old', 'DONE', '{"maxTrialNumber": 1}', 'secret', 1.0, 2.0);"""
)


def database(folder: Path, script: str, version: int) -> None:
    with closing(sqlite3.connect(folder / "experiment.db")) as db:
        db.executescript(f"{script} PRAGMA user_version = {version};")


def test_folder_without_experiment_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not the folder of an experiment"):
        ExperimentView(tmp_path).summary()


def test_database_of_a_newer_pitchpipe_is_refused(tmp_path: Path) -> None:
    database(tmp_path, "", 99)
    with (
        ExperimentView(ExperimentFolder(tmp_path)) as view,
        pytest.raises(StoreError, match="upgrade Pitchpipe here"),
    ):
        view.summary()


def test_database_of_an_older_pitchpipe_is_upgraded_when_it_is_read(tmp_path: Path) -> None:
    database(tmp_path, OLD, 1)
    with ExperimentView(ExperimentFolder(tmp_path)) as view:
        assert view.summary().status == "DONE"
        assert view.database.schema_version() == SCHEMA_VERSION
    assert ExperimentFolder(tmp_path).manager() is None


def test_database_that_an_older_pitchpipe_still_writes_is_left_alone(tmp_path: Path) -> None:
    database(tmp_path, OLD, 1)
    owner = ExperimentFolder(tmp_path)
    owner.own()
    with ExperimentView(ExperimentFolder(tmp_path)) as view, pytest.raises(StoreError, match="stop it first"):
        view.summary()
    owner.disown()


def test_reader_does_not_keep_the_manager_from_writing(filled: MadeExperiment, view: ExperimentView) -> None:
    view.summary()
    filled.commit(a_trial(5, value=0.01))
    assert view.best()[0].sequence_id == 5
    with pytest.raises(StoreError, match="readonly"):
        view.database.rows("DELETE FROM trials")
