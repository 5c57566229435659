"""Which trials ran the same code: what two of them have both loaded decides."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pitchpipe.sdk.loaded_code import file_digest
from pitchpipe.store.errors import StoreError
from pitchpipe.store.reading.code_versions import changed_files
from pitchpipe.store.reading.view import ExperimentView

from ...stored import MadeExperiment, a_trial

Loaded = Mapping[str, Mapping[str, str]]
LoadedBy = Callable[[Mapping[int, Loaded]], ExperimentView]


def files(**digests: str) -> Loaded:
    return {"files": {f"{name}.py": digest for name, digest in digests.items()}, "packages": {}}


@pytest.fixture
def loaded_by(made: MadeExperiment) -> LoadedBy:
    """Return a function that stores what trials have loaded, by their numbers, and returns a view."""

    def stored(loaded: Mapping[int, Loaded]) -> ExperimentView:
        made.commit(
            *(replace(a_trial(number, value=0.5), code=json.dumps(one)) for number, one in loaded.items())
        )
        made.store.close()
        with sqlite3.connect(made.folder.database) as db:
            rows = {json.dumps(one) for one in loaded.values()}
            db.executemany("INSERT INTO code_versions VALUES (?, ?)", [(text, text) for text in rows])
        db.close()
        return ExperimentView(made.folder)

    return stored


def test_changed_file_begins_a_version(loaded_by: LoadedBy) -> None:
    with loaded_by({0: files(train="01"), 1: files(train="01"), 2: files(train="02")}) as view:
        first, second = view.code_versions()
    assert (first.number, first.first_trial, first.trials, first.changed) == (1, 0, 2, ())
    assert (second.number, second.first_trial, second.trials, second.changed) == (2, 2, 1, ("train.py",))


def test_option_that_loads_other_files_is_the_same_version(loaded_by: LoadedBy) -> None:
    loaded = {0: files(train="01", tree="11"), 1: files(train="01", net="21"), 2: files(train="01", net="22")}
    with loaded_by(loaded) as view:
        versions = view.code_versions()
    assert [(one.first_trial, one.changed) for one in versions] == [(0, ()), (2, ("net.py",))]
    assert versions[0].files == {"train.py": "01", "tree.py": "11", "net.py": "21"}


def test_older_code_that_still_runs_is_the_older_version(loaded_by: LoadedBy) -> None:
    loaded = [files(train="01"), files(train="02"), files(train="01", tree="11"), files(train="02")]
    with loaded_by(dict(enumerate(loaded))) as view:
        assert [(one.first_trial, one.trials) for one in view.code_versions()] == [(0, 2), (1, 2)]


def test_another_package_is_another_version(loaded_by: LoadedBy) -> None:
    loaded = [{"files": {}, "packages": {"numpy": version}} for version in ("1.26.4", "2.1.0")]
    with loaded_by(dict(enumerate(loaded))) as view:
        assert [one.changed for one in view.code_versions()] == [(), ("numpy",)]


def test_files_that_are_not_what_the_last_trials_ran(loaded_by: LoadedBy, tmp_path: Path) -> None:
    for name in ("train.py", "same.py"):
        (tmp_path / name).write_text("x = 1")
    digest = file_digest(str(tmp_path / "train.py"))
    loaded = {"train.py": digest or "", "same.py": digest or "", "gone.py": "01", "f()": "02"}
    with loaded_by({0: {"files": loaded, "packages": {}}}) as view:
        versions = view.code_versions()
    assert changed_files(versions, tmp_path) == ["gone.py"]
    (tmp_path / "train.py").write_text("x = 2")
    assert changed_files(versions, tmp_path) == ["train.py", "gone.py"]
    assert changed_files([], tmp_path) == []


def test_what_cannot_be_understood_is_damage(made: MadeExperiment) -> None:
    made.commit(replace(a_trial(0, value=0.5), code="01"))
    made.store.close()
    with sqlite3.connect(made.folder.database) as db:
        db.execute("INSERT INTO code_versions VALUES ('01', '[1]')")
        db.execute("INSERT INTO starts VALUES (1.0, '{\"planet\": 1}', '')")
    db.close()
    with ExperimentView(made.folder) as view:
        with pytest.raises(StoreError, match="code_versions"):
            view.code_versions()
        with pytest.raises(StoreError, match="starts"):
            view.starts()


def test_starts_in_order(made: MadeExperiment) -> None:
    made.store.note_start(2.0, '{"host": "b", "gpus": ["H100, 550"]}', "")
    made.store.note_start(1.0, '{"host": "a", "commit": "0123", "changed": 1}', "-x")
    made.store.close()
    with ExperimentView(made.folder) as view:
        first, second = view.starts()
    assert (first.host, first.commit, first.changed) == ("a", "0123", 1)
    assert (second.host, second.gpus, second.commit) == ("b", ("H100, 550",), None)
